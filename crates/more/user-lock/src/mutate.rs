//! Changes of a lock's file in C or C++, each of which makes another lock: a
//! comparison, a condition, a constant, an operator, a field, a statement.
//!
//! What an access does is changed while the lock runs (locklab_verify); this
//! is what lies between the accesses. Only tokens in the bodies of functions
//! are changed, never a directive of the preprocessor, and no function that the
//! checker does not call. A change that does not compile, or that the compiler
//! makes the same code of, is no mutant.

use crate::compile::{self, Unit};
use crate::own_test::{self, Rules};
use locklab_verify::{Property, SourceMutant};
use std::ops::Range;
use std::sync::Arc;

/// Returns the mutants of the file of a unit, checked by these rules; none if it cannot
/// be read.
pub(crate) fn mutants(unit: &Unit, rules: Rules) -> Vec<SourceMutant> {
    let Ok(text) = std::fs::read_to_string(&unit.file) else {
        return Vec::new();
    };
    let shared = Arc::new((text, unit.clone()));
    let name = unit.file.file_name().map_or_else(
        || unit.name.clone(),
        |name| name.to_string_lossy().into_owned(),
    );
    let edits = edits(&shared.0).into_iter();
    edits
        .map(|edit| {
            let (text, _) = &*shared;
            let before = &text[..edit.at.start];
            let line = before.matches('\n').count() + 1;
            let column = before.len() - before.rfind('\n').map_or(0, |end| end + 1) + 1;
            SourceMutant {
                line: format!("{name}:{line}:{column}"),
                source: text.lines().nth(line - 1).unwrap_or("").trim().to_owned(),
                change: edit.change.clone(),
                promises: {
                    let shared = shared.clone();
                    Box::new(move || promises(&shared.0, &shared.1, &edit, rules))
                },
            }
        })
        .collect()
}

/// Returns the promises of the lock with this edit.
fn promises(text: &str, unit: &Unit, edit: &Edit, rules: Rules) -> Option<Vec<Property>> {
    let folder = crate::folders::make("locklab-user-lock").ok()?;
    let file = folder.path().join(unit.file.file_name()?);
    let edited = [&text[..edit.at.start], &*edit.new, &text[edit.at.end..]].concat();
    std::fs::write(&file, edited).ok()?;
    // What it includes is found beside the original.
    let beside = unit.file.parent().unwrap_or(".".as_ref());
    let flags = ["-iquote".to_owned(), beside.display().to_string()];
    let edited = Unit {
        file,
        flags: [&flags[..], &unit.flags].concat(),
        ..unit.clone()
    };
    if compile::code(&edited)? == compile::code(unit)? {
        return None;
    }
    let checked = compile::compile_for_checker(&edited).ok()?;
    let kept = (checked.folder, folder);
    Some(own_test::promises(
        checked.library,
        checked.facts,
        rules,
        kept,
    ))
}

/// A change of the text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Edit {
    pub(crate) at: Range<usize>,
    pub(crate) new: String,
    /// Holds what was there and what is.
    pub(crate) change: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Name,
    Number,
    Sign,
    Text,
}

#[derive(Clone, Copy, Debug)]
struct Token<'a> {
    text: &'a str,
    start: usize,
    kind: Kind,
}

impl Token<'_> {
    fn end(&self) -> usize {
        self.start + self.text.len()
    }
}

/// The longest come first.
const SIGNS: [&str; 21] = [
    "<<=", ">>=", "->", "++", "--", "<<", ">>", "<=", ">=", "==", "!=", "&&", "||", "+=", "-=",
    "*=", "/=", "&=", "|=", "^=", "::",
];

/// Holds what stands for what; each the other way round too.
const SWAPPED: [(&str, &str); 9] = [
    ("==", "!="),
    ("<", "<="),
    (">", ">="),
    ("&&", "||"),
    ("+", "-"),
    ("&", "|"),
    ("<<", ">>"),
    ("++", "--"),
    ("+=", "-="),
];

/// Words that a statement which is an expression does not begin with.
const KEYWORDS: [&str; 24] = [
    "return", "if", "while", "for", "do", "else", "switch", "case", "default", "goto", "break",
    "continue", "sizeof", "const", "static", "struct", "union", "enum", "unsigned", "volatile",
    "_Atomic", "typedef", "using", "throw",
];

/// Functions that the checker never calls, or which cost time only.
const NOT_CALLED: [&str; 2] = ["lab_is_locked", "lab_relax"];

/// Returns the tokens of the text: no comments, no directives.
fn tokens(text: &str) -> Vec<Token<'_>> {
    let mut tokens: Vec<Token<'_>> = Vec::new();
    let mut at = 0;
    let mut line_begins = true;
    while let Some(c) = text[at..].chars().next() {
        let rest = &text[at..];
        let until = |end: Option<usize>| end.unwrap_or(rest.len());
        let is_word = |c: char| c.is_alphanumeric() || c == '_';
        let (length, kind) = if c.is_whitespace() {
            line_begins |= c == '\n';
            at += c.len_utf8();
            continue;
        } else if rest.starts_with("//") {
            (until(rest.find('\n')), None)
        } else if rest.starts_with("/*") {
            (until(rest.find("*/").map(|end| end + 2)), None)
        } else if c == '#' && line_begins {
            let mut end = 0;
            for line in rest.split_inclusive('\n') {
                end += line.len();
                if !line.trim_end().ends_with('\\') {
                    break;
                }
            }
            (end, None)
        } else if c == '"' || c == '\'' {
            let mut escaped = false;
            let end = rest.char_indices().skip(1).find(|(_, now)| {
                let ends = *now == c && !escaped;
                escaped = *now == '\\' && !escaped;
                ends
            });
            (until(end.map(|(end, _)| end + 1)), Some(Kind::Text))
        } else if c.is_ascii_digit() {
            let end = rest.find(|c: char| !is_word(c) && c != '.' && c != '\'');
            (until(end), Some(Kind::Number))
        } else if is_word(c) {
            (until(rest.find(|c| !is_word(c))), Some(Kind::Name))
        } else {
            let known = SIGNS.iter().find(|sign| rest.starts_with(**sign));
            (
                known.map_or(c.len_utf8(), |sign| sign.len()),
                Some(Kind::Sign),
            )
        };
        line_begins = rest[..length].ends_with('\n');
        if let Some(kind) = kind {
            tokens.push(Token {
                text: &rest[..length],
                start: at,
                kind,
            });
        }
        at += length;
    }
    tokens
}

/// Returns the token that closes the bracket at `open`.
fn closing(tokens: &[Token<'_>], open: usize) -> Option<usize> {
    let mut depth = 0_i32;
    let inner = tokens.iter().enumerate().skip(open);
    for (at, token) in inner {
        match token.text {
            "(" | "[" | "{" if token.kind == Kind::Sign => depth += 1,
            ")" | "]" | "}" if token.kind == Kind::Sign => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return Some(at);
        }
    }
    None
}

/// Returns the bodies of functions that the checker calls, as ranges of tokens.
fn bodies(tokens: &[Token<'_>]) -> Vec<Range<usize>> {
    let mut bodies = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        let opens = tokens[at].text == "{" && at > 0 && tokens[at - 1].text == ")";
        let Some(end) = opens.then(|| closing(tokens, at)).flatten() else {
            at += 1;
            continue;
        };
        let mut parameters = (0..at)
            .rev()
            .filter(|&open| tokens[open].text == "(" && closing(tokens, open) == Some(at - 1));
        let name = parameters
            .next()
            .and_then(|open| tokens.get(open.checked_sub(1)?));
        if name.is_none_or(|name| !NOT_CALLED.contains(&name.text)) {
            bodies.push(at + 1..end);
        }
        at = end;
    }
    bodies
}

/// Returns every edit of the text.
pub(crate) fn edits(text: &str) -> Vec<Edit> {
    let tokens = tokens(text);
    let bodies = bodies(&tokens);
    let mut fields: Vec<&str> = Vec::new();
    for at in bodies
        .iter()
        .cloned()
        .flatten()
        .filter(|&at| is_field(&tokens, at))
    {
        if !fields.contains(&tokens[at].text) {
            fields.push(tokens[at].text);
        }
    }
    let mut edits = Vec::new();
    for body in bodies {
        for at in body.clone() {
            let token = tokens[at];
            let mut replace = |new: &str| {
                edits.push(Edit {
                    at: token.start..token.end(),
                    new: new.to_owned(),
                    change: format!(
                        "{} -> {}",
                        token.text,
                        if new.is_empty() { "nothing" } else { new }
                    ),
                });
            };
            match token.kind {
                Kind::Sign => {
                    if let Some(new) = swapped(&tokens, at) {
                        replace(new);
                    } else if token.text == "!" {
                        replace("");
                    }
                }
                Kind::Number => {
                    if let Some(new) = one_more(token.text) {
                        replace(&new);
                    }
                }
                Kind::Name if is_field(&tokens, at) && fields.len() > 1 => {
                    let known = fields.iter().position(|field| *field == token.text);
                    replace(fields[(known.unwrap_or(0) + 1) % fields.len()]);
                }
                _ => {}
            }
            edits.extend(conditions(&tokens, at));
            edits.extend(without(text, &tokens, at));
        }
    }
    edits
}

/// Returns whether a token is the name of a field that is accessed.
fn is_field(tokens: &[Token<'_>], at: usize) -> bool {
    let called = tokens.get(at + 1).is_some_and(|next| next.text == "(");
    let before = at.checked_sub(1).map(|before| tokens[before].text);
    tokens[at].kind == Kind::Name && matches!(before, Some("->" | ".")) && !called
}

/// Returns what stands for a sign, if that is one between two values.
fn swapped(tokens: &[Token<'_>], at: usize) -> Option<&'static str> {
    let sign = tokens[at].text;
    let before = tokens[at.checked_sub(1)?];
    let is_value = match before.kind {
        Kind::Name => !KEYWORDS.contains(&before.text),
        Kind::Number | Kind::Text => true,
        Kind::Sign => matches!(before.text, ")" | "]"),
    };
    let steps = matches!(sign, "++" | "--");
    if !is_value && !steps {
        return None;
    }
    SWAPPED.iter().find_map(|&(one, other)| match sign {
        _ if sign == one => Some(other),
        _ if sign == other => Some(one),
        _ => None,
    })
}

fn one_more(number: &str) -> Option<String> {
    let digits = number.trim_end_matches(['u', 'U', 'l', 'L', 'z', 'Z']);
    let suffix = &number[digits.len()..];
    let digits = digits.replace('\'', "");
    let value = match digits.strip_prefix("0x").or(digits.strip_prefix("0X")) {
        Some(hex) => u64::from_str_radix(hex, 16).ok()?,
        None => digits.parse::<u64>().ok()?,
    };
    Some(format!("{}{suffix}", value.checked_add(1)?))
}

/// Returns the edits that make a condition always true, or always false, whatever its
/// code finds.
fn conditions(tokens: &[Token<'_>], at: usize) -> Vec<Edit> {
    let outcomes: &[&str] = match tokens[at].text {
        "if" => &["1", "0"],
        // A loop without an end is no mutant worth a run.
        "while" => &["0"],
        _ => return Vec::new(),
    };
    let opens = tokens.get(at + 1).filter(|next| next.text == "(");
    let Some(end) = opens.and_then(|_| closing(tokens, at + 1)) else {
        return Vec::new();
    };
    let end = tokens[end].start;
    let edit = |outcome: &&str| Edit {
        at: end..end,
        new: format!(", {outcome}"),
        change: format!(
            "condition always {}",
            if **outcome == *"1" { "true" } else { "false" }
        ),
    };
    outcomes.iter().map(edit).collect()
}

/// Returns the text without the statement that begins here, if it is an expression.
fn without(text: &str, tokens: &[Token<'_>], at: usize) -> Option<Edit> {
    let first = tokens[at];
    let begins = matches!(
        tokens.get(at.checked_sub(1)?)?.text,
        ";" | "{" | "}" | ")" | "else"
    );
    let second = tokens.get(at + 1)?.text;
    let goes_on = matches!(
        second,
        "(" | "->" | "." | "=" | "[" | "++" | "--" | "+=" | "-=" | "|=" | "&="
    );
    let is_expression = first.kind == Kind::Name
        && goes_on
        && !KEYWORDS.contains(&first.text)
        && !NOT_CALLED.contains(&first.text)
        // What an access does is changed while the lock runs.
        && !first.text.contains("atomic");
    if !begins || !is_expression {
        return None;
    }
    let mut end = at;
    while tokens.get(end)?.text != ";" {
        end = match tokens[end].text {
            "(" | "[" | "{" => closing(tokens, end)? + 1,
            ")" | "]" | "}" => return None,
            _ => end + 1,
        };
    }
    let at = first.start..tokens[end].start;
    Some(Edit {
        change: format!(
            "left out: {}",
            text[at.clone()]
                .split_whitespace()
                .collect::<Vec<_>>()
                .join(" ")
        ),
        at,
        new: String::new(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edited(text: &str) -> Vec<String> {
        let of = |edit: &Edit| [&text[..edit.at.start], &*edit.new, &text[edit.at.end..]].concat();
        edits(text).iter().map(of).collect()
    }

    #[test]
    fn every_token_of_a_body_is_changed_and_nothing_else() {
        let body = |inner: &str| {
            format!("#define A 1\nstruct s {{ int a, b[2]; }};\nint f(int x) {{ {inner} }}\n")
        };
        let all = |inner: &str| -> Vec<String> {
            let (before, after) = ("int f(int x) { ", " }\n");
            let cut = |text: String| {
                let rest = text
                    .split_once(before)
                    .expect("the function is still there")
                    .1
                    .to_owned();
                rest.strip_suffix(after).expect("its end too").to_owned()
            };
            edited(&body(inner)).into_iter().map(cut).collect()
        };
        assert_eq!(
            all("return x == 3u;"),
            ["return x != 3u;", "return x == 4u;"]
        );
        assert_eq!(
            all("if (!x) g();"),
            [
                "if (!x, 1) g();",
                "if (!x, 0) g();",
                "if (x) g();",
                "if (!x) ;"
            ]
        );
        assert_eq!(
            all("while (*p) lab_relax();"),
            ["while (*p, 0) lab_relax();"]
        );
        assert_eq!(
            all("p->a = q->b;"),
            [";", "p->b = q->b;", "p->a = q->a;"].map(str::to_owned)
        );
        assert_eq!(all("int y = -x; /* x + 1 */"), Vec::<String>::new());
        assert_eq!(
            all("return x & 0x0f;"),
            ["return x | 0x0f;", "return x & 16;"]
        );
        assert_eq!(all("f(\"a == b\");"), [";"]);
    }

    #[test]
    fn what_the_checker_does_not_call_is_left() {
        assert_eq!(
            edited("int lab_is_locked(const void *l) { return 1; }"),
            Vec::<String>::new()
        );
        assert_eq!(edited("int x = 3;"), Vec::<String>::new());
    }
}
