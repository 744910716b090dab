//! The chapter of the book on the C interface, made from the header alone:
//! each comment with the declaration that follows it, in the header's order.

/// Text before the items.
const HEAD: &str = "# C reference

Every function, type and constant of `locklab.h`, in the order of the header,
from which this page is made (`UPDATE_GOLDEN=1 cargo test -p locklab-capi`).
`cargo xtask install-c --prefix DIR` installs header and library, and
`pkg-config --cflags --libs locklab` finds them. `locklab.hpp` has the same locks
as C++ classes; `locklab_inline.h` has the fast paths as inline functions, named
with the suffix `_inline`.
";

/// Returns the chapter of the book that a header makes.
pub(crate) fn chapter(header: &str) -> String {
    let mut text = HEAD.to_owned();
    for (comment, declaration) in items(header) {
        text += &format!("\n## {}\n", title(&declaration));
        if !comment.is_empty() {
            text += &format!("\n{comment}\n");
        }
        text += &format!("\n```c\n{declaration}\n```\n");
    }
    text
}

/// Comments, each with the declaration that it is about.
fn items(header: &str) -> Vec<(String, String)> {
    let body = header.split_once("#define LOCKLAB_H\n").expect("a guard").1;
    let mut items: Vec<(String, String)> = Vec::new();
    let mut comment = String::new();
    let mut lines = body.lines().peekable();
    while let Some(line) = lines.next() {
        let mut item = line.to_owned();
        if line.starts_with("/*") {
            while !item.ends_with("*/") {
                item = format!("{item}\n{}", lines.next().expect("the comment ends"));
            }
            comment = prose(&item);
        } else if line.starts_with("#define") {
            while item.ends_with('\\') {
                item = format!("{item}\n{}", lines.next().expect("the macro ends"));
            }
            match items.last_mut() {
                // Constants under one comment.
                Some((_, before)) if comment.is_empty() && before.starts_with("#define") => {
                    *before += &format!("\n{item}");
                }
                _ if comment.is_empty() => {} // An attribute, which the types show.
                _ => items.push((std::mem::take(&mut comment), item)),
            }
        } else if !(line.is_empty() || line.starts_with(['#', '}']) || line.starts_with("extern")) {
            let open = |text: &str| text.matches('{').count() > text.matches('}').count();
            while open(&item) || !item.ends_with(';') {
                item = format!("{item}\n{}", lines.next().expect("the declaration ends"));
            }
            items.push((std::mem::take(&mut comment), compact(&item)));
        }
    }
    items
}

/// Returns the text of a comment, as Markdown.
fn prose(comment: &str) -> String {
    let inside = comment.trim_start_matches("/*").trim_end_matches("*/");
    let lines = inside.lines().map(|line| {
        let line = line.trim();
        line.strip_prefix('*').unwrap_or(line).trim()
    });
    let text = lines.collect::<Vec<_>>().join("\n");
    text.trim().replace("Requires:", "**Requires:**")
}

/// Returns a declaration whose members' comments take no lines for their marks.
fn compact(declaration: &str) -> String {
    let text = declaration
        .replace("/*\n   ", "/* ")
        .replace("\n   */", " */");
    let lines = text.lines().map(|line| match line.strip_prefix("   ") {
        Some(more) if !more.starts_with('*') => format!("   * {more}"),
        _ => line.to_owned(),
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// Returns the name that a declaration declares.
fn title(declaration: &str) -> String {
    let name = |text: &str| {
        let word = |c: char| c.is_alphanumeric() || c == '_';
        let start = text.trim_end().rfind(|c| !word(c)).map_or(0, |at| at + 1);
        text.trim_end()[start..].to_owned()
    };
    if declaration.starts_with("#define") {
        let first = name(
            declaration[8..]
                .split([' ', '('])
                .next()
                .unwrap_or_default(),
        );
        return format!("Constants: `{first}` and others");
    }
    let name = match declaration.rfind('}') {
        Some(end) => name(declaration[end..].trim_end_matches(';')),
        None => name(&declaration[..declaration.find('(').unwrap_or(declaration.len())]),
    };
    format!("`{name}`")
}
