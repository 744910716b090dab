//! Inputs of the programs, the same in every run. It must never depend on the machine.

use std::fmt::Write as _;
use std::path::Path;

/// The question for jq; one word.
pub(crate) const QUERY: &str = "map(select(.age>30)|{name,town:(.town|ascii_upcase)})|group_by(.town)|map({t:.[0].town,n:length})";

const LUA: &str = "\
local function fib(n) if n < 2 then return n end return fib(n - 1) + fib(n - 2) end
local t, s = {}, 0
for i = 1, 200000 do t[i] = (i * 7919) % 10007 end
table.sort(t)
for i = 1, #t do s = s + t[i] % 7 end
local words = {}
for w in string.gmatch(string.rep('lock queue handoff spins waits ', 8000), '%a+') do
  words[w] = (words[w] or 0) + #w
end
local parts = {}
for i = 1, 60000 do parts[#parts + 1] = string.format('%d:%s', i, tostring(i * 3)) end
local joined = table.concat(parts, ',')
local objects = {}
local class = {}; class.__index = class
function class:add(n) self.sum = self.sum + n; return self end
for i = 1, 200 do objects[i] = setmetatable({sum = i}, class) end
for i = 1, 1500000 do objects[i % 200 + 1]:add(i) end
print(fib(30), s, words.lock, #joined, objects[7].sum)
";

const AWK: &str = "\
{ for (i = 1; i <= NF; i++) { gsub(/[^a-z]/, \"\", $i); n[$i]++; l += length($i) } }
/queue.*waits/ { q++ }
END { for (w in n) s += n[w] * length(w); print NR, l, q, s }
";

/// Writes all inputs into a folder.
///
/// # Errors
/// If a file cannot be written.
pub(crate) fn write(folder: &Path) -> Result<(), String> {
    std::fs::create_dir_all(folder).map_err(|e| e.to_string())?;
    let files = [
        ("script.lua", LUA.to_owned()),
        ("words.awk", AWK.to_owned()),
        ("text", prose(3_000_000)),
        ("short", prose(1_500_000)),
        ("long", prose(12_000_000)),
        ("functions.c", functions(30_000)),
        ("rows.json", rows(45_000)),
        ("tree.xml", tree(60_000)),
    ];
    for (name, text) in files {
        let path = folder.join(name);
        std::fs::write(&path, text).map_err(|e| format!("{}: {e}", path.display()))?;
    }
    Ok(())
}

/// Draws from a linear congruential generator, whose upper bits are good enough for text.
fn draw(state: &mut u32) -> u32 {
    *state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
    *state >> 12
}

/// Returns the text that compresses as text does.
fn prose(bytes: usize) -> String {
    let words = [
        "lock", "queue", "handoff", "spins", "while", "a", "node", "waits", "for", "its",
    ];
    let (mut state, mut text) = (1, String::with_capacity(bytes + 32));
    while text.len() < bytes {
        let n = draw(&mut state);
        text.push_str(words[n as usize % words.len()]);
        text.push_str([" ", " ", ", ", ".\n"][(n >> 8) as usize % 4]);
        if n >> 16 == 0 {
            let _ = write!(text, "{n} ");
        }
    }
    text
}

/// Returns C for a compiler that needs no header.
fn functions(count: usize) -> String {
    let mut text = String::new();
    for n in 0..count {
        let _ = writeln!(
            text,
            "struct s{n} {{ int a, b[{}]; struct s{n} *next; }};\n\
             static int f{n}(struct s{n} *p, int k) {{\n\
             int i, s = {n};\n\
             for (i = 0; i < k; i++) {{\n\
             switch (p->b[i & 3]) {{ case 0: s += p->a * {n}; break; case 1: s ^= i >> 2; break;\n\
             default: if (s > k && p->next) s -= p->next->a; else s = s * 3 + 1; }}\n\
             while (s > 100000) s /= 2; }}\n\
             return s; }}\n\
             int g{n}(int k) {{ struct s{n} x = {{ k, {{ 1, 2, 3 }}, 0 }}; return f{n}(&x, k); }}",
            4 + n % 5
        );
    }
    text
}

/// Records as JSON.
fn rows(count: u32) -> String {
    let mut state = 3;
    let row = |n: u32| {
        let drawn = draw(&mut state);
        format!(
            "{{\"id\":{n},\"name\":\"name {}\",\"age\":{},\"town\":\"town {}\",\"tags\":[\"a\",{}]}}",
            drawn % 1000,
            drawn % 97,
            drawn % 211,
            drawn % 5
        )
    };
    let rows: Vec<String> = (0..count).map(row).collect();
    format!("[{}]", rows.join(","))
}

/// Returns a document with attributes, entities and text.
fn tree(count: u32) -> String {
    let (mut state, mut text) = (5, "<?xml version=\"1.0\"?>\n<list>\n".to_owned());
    for n in 0..count {
        let drawn = draw(&mut state);
        let _ = writeln!(
            text,
            "<entry id=\"e{n}\" kind='k{}'><name>name &amp; {}</name><empty/><!-- {n} -->\
             <deep><er>text {}</er></deep></entry>",
            drawn % 7,
            drawn % 1000,
            drawn % 313
        );
    }
    text.push_str("</list>\n");
    text
}
