//! JSON that a program did not finish, or that is not quite JSON: what is
//! complete is read.
//!
//! A benchmark that was killed leaves half of a file, and Python writes NaN. Must
//! never make up a value: the number at which a file ends may go on, so it is
//! left out.

use serde_json::Value;

/// Returns the first JSON value of a text, and what was wrong, in one sentence.
pub(crate) fn json(text: &str) -> Option<(Value, Option<String>)> {
    let text = without_nan(text);
    let mut values = serde_json::Deserializer::from_str(&text).into_iter::<Value>();
    match values.next()? {
        Ok(value) => {
            let rest = text[values.byte_offset()..].trim();
            let note = (!rest.is_empty()).then(|| {
                "There is more text behind the end of its JSON, which is not read.".to_owned()
            });
            Some((value, note))
        }
        Err(error) => {
            // All before the place of the error is sound; how far that is in
            // bytes, the lines say.
            let sound = match error.is_eof() {
                true => text.len(),
                false => place(&text, error.line(), error.column()),
            };
            let whole = closed(&text[..sound])?;
            let value = serde_json::from_str(&whole).ok()?;
            let why = match error.is_eof() {
                true => "It ends in the middle of its JSON".to_owned(),
                false => format!("Its JSON is broken in line {}", error.line()),
            };
            Some((
                value,
                Some(format!("{why}; what is complete before is read.")),
            ))
        }
    }
}

/// Returns the place of a line and a column in bytes.
fn place(text: &str, line: usize, column: usize) -> usize {
    let before = text.split_inclusive('\n').take(line.saturating_sub(1));
    let mut at = before.map(str::len).sum::<usize>() + column.saturating_sub(1);
    at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

/// Returns the text up to the last value that is complete, with all that is open closed.
fn closed(text: &str) -> Option<String> {
    let mut open: Vec<u8> = Vec::new();
    // Where the last complete value ends, and what is open there.
    let mut sound: Option<(usize, Vec<u8>)> = None;
    let (mut in_string, mut escaped) = (false, false);
    for (at, byte) in text.bytes().enumerate() {
        if in_string {
            match byte {
                _ if escaped => escaped = false,
                b'\\' => escaped = true,
                b'"' => in_string = false,
                _ => {}
            }
            continue;
        }
        match byte {
            b'"' => in_string = true,
            b'{' | b'[' => {
                open.push(byte);
                sound = Some((at + 1, open.clone()));
            }
            b'}' | b']' => {
                open.pop()?;
                sound = Some((at + 1, open.clone()));
            }
            // Only what a comma follows is known to be complete.
            b',' => sound = Some((at, open.clone())),
            _ => {}
        }
    }
    let (end, open) = sound?;
    let mut whole = text[..end].to_owned();
    for byte in open.iter().rev() {
        whole.push(if *byte == b'{' { '}' } else { ']' });
    }
    Some(whole)
}

/// Writes null for NaN and the infinities, which some programs write.
fn without_nan(text: &str) -> String {
    let words = ["-Infinity", "Infinity", "-NaN", "NaN"];
    if !words.iter().any(|word| text.contains(word)) {
        return text.to_owned();
    }
    let mut out = String::with_capacity(text.len());
    let (mut in_string, mut escaped) = (false, false);
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        if !in_string && let Some(after) = words.iter().find_map(|word| rest.strip_prefix(word)) {
            out.push_str("null");
            rest = after;
            continue;
        }
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = in_string,
            '"' => in_string = !in_string,
            _ => {}
        }
        out.push(c);
        rest = &rest[c.len_utf8()..];
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read(text: &str) -> Value {
        json(text).map(|(value, _)| value).unwrap_or_default()
    }

    #[test]
    fn what_is_complete_is_read_wherever_the_text_ends() {
        let text =
            r#"{"results": [{"name": "a\"]", "times": [1, 2.5]}, {"name": "b", "times": [3, 41"#;
        assert_eq!(
            read(text),
            json!({"results": [
                {"name": "a\"]", "times": [1, 2.5]},
                {"name": "b", "times": [3]}
            ]})
        );
        let whole = r#"[{"a": 1, "b": [true, {"c": "x"}]}, 5]"#;
        for end in 0..whole.len() {
            let found = json(&whole[..end]);
            if let Some((value, note)) = found {
                assert!(value.is_array() && note.is_some(), "{end}");
            }
        }
        assert_eq!(json(whole).unwrap().1, None);
    }

    #[test]
    fn what_is_no_number_is_null_and_names_are_kept() {
        assert_eq!(
            read(r#"{"NaN": [NaN, -Infinity, 1, "Infinity \" NaN"]}"#),
            json!({"NaN": [null, null, 1, "Infinity \" NaN"]})
        );
    }

    #[test]
    fn what_follows_and_what_breaks_is_said() {
        assert!(
            json("[1] [2]")
                .unwrap()
                .1
                .unwrap()
                .contains("behind the end")
        );
        let (value, note) = json("[1, 2,\n oops, 4]").unwrap();
        assert_eq!(value, json!([1, 2]));
        assert!(note.unwrap().contains("broken in line 2"));
        assert_eq!(json(""), None);
        assert_eq!(json("hello"), None);
    }
}
