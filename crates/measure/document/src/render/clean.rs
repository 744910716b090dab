//! Makes text such as XML and HTML may have it. Every renderer of these must pass
//! foreign text through here.

/// Returns the text without the characters that XML does not allow.
pub(super) fn clean(text: &str) -> String {
    text.chars()
        .map(|c| match c {
            '\t' | '\n' | '\r' => c,
            c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => '\u{fffd}',
            c => c,
        })
        .collect()
}
