//! The configuration as a file: reading it with the line of every key, and writing one that reads the same.

use std::fmt;

use toml::de::{DeTable, DeValue};

use super::keys::{KEYS, Value};
use super::{Config, ConfigError};

/// A key of a file, where it stands, and what it says. Whether there is such a key is not known here.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) key: String,
    pub(super) line: usize,
    /// Whether it is a whole section, of a name that no section has.
    pub(super) section: bool,
    pub(super) value: Result<Value, String>,
}

/// What a file says, in the order of its lines. The path is for messages.
pub(super) fn read(path: &str, text: &str) -> Result<Vec<Entry>, ConfigError> {
    let line_of = |at: usize| text.as_bytes().iter().take(at).filter(|byte| **byte == b'\n').count() + 1;
    let table = DeTable::parse(text).map_err(|error| {
        let line = error.span().map_or(1, |span| line_of(span.start));
        let what = error.message().lines().collect::<Vec<_>>().join("; ");
        ConfigError::Refused(format!("{path}:{line}: {what}"))
    })?;
    let mut entries = Vec::new();
    add_table(&mut entries, "", table.get_ref(), &line_of);
    entries.sort_by_key(|entry| entry.line);
    Ok(entries)
}

fn add_table(
    entries: &mut Vec<Entry>,
    section: &str,
    table: &DeTable<'_>,
    line_of: &impl Fn(usize) -> usize,
) {
    for (name, value) in table {
        let key = format!("{section}{}", name.get_ref());
        let line = line_of(name.span().start);
        let is_section = KEYS.iter().any(|known| known.name.starts_with(&format!("{key}.")));
        match value.get_ref() {
            DeValue::Table(inner) if is_section => add_table(entries, &format!("{key}."), inner, line_of),
            other => {
                let section = matches!(other, DeValue::Table(_));
                entries.push(Entry { key, line, section, value: read_value(other) });
            }
        }
    }
}

fn read_value(value: &DeValue<'_>) -> Result<Value, String> {
    match value {
        DeValue::String(text) => Ok(Value::Text(text.to_string())),
        DeValue::Boolean(flag) => Ok(Value::Flag(*flag)),
        DeValue::Integer(number) => u64::from_str_radix(number.as_str(), number.radix())
            .map(Value::Number)
            .map_err(|_| format!("{} is not a whole number from 0 to {}", number.as_str(), u64::MAX)),
        DeValue::Float(number) => Err(format!("{} is not a whole number", number.as_str())),
        DeValue::Datetime(_) => Err("a date is neither text, number nor flag".to_owned()),
        DeValue::Array(list) => {
            let texts = list.iter().map(|item| match item.get_ref() {
                DeValue::String(text) => Ok(text.to_string()),
                _ => Err("a list has something else in it than texts in quotes".to_owned()),
            });
            texts.collect::<Result<_, _>>().map(Value::List)
        }
        DeValue::Table(_) => Err("a section is neither text, number nor flag".to_owned()),
    }
}

/// The whole configuration as a file.
pub(super) fn write(f: &mut impl fmt::Write, config: &Config) -> fmt::Result {
    let mut present = "";
    for key in &KEYS {
        let (section, name) = key.name.split_once('.').unwrap_or(("", key.name));
        if section != present {
            write!(f, "\n[{section}]\n")?;
            present = section;
        }
        writeln!(f, "{name} = {}", key.get(config))?;
    }
    Ok(())
}

/// Text in quotes, with everything escaped that must be.
pub(super) fn write_text(f: &mut fmt::Formatter<'_>, text: &str) -> fmt::Result {
    f.write_str("\"")?;
    for letter in text.chars() {
        match letter {
            '"' | '\\' => write!(f, "\\{letter}")?,
            control if control.is_control() => write!(f, "\\u{:04X}", u32::from(control))?,
            plain => write!(f, "{plain}")?,
        }
    }
    f.write_str("\"")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_comes_with_its_line() {
        let text =
            "# comment\nname = \"a\"\n\n[http]\nmax_body_bytes = 0x3_0000\n[limits]\nmax_wotches = true\n";
        let entry =
            |key: &str, line, value| Entry { key: key.to_owned(), line, section: false, value: Ok(value) };
        assert_eq!(
            read("x", text).unwrap(),
            [
                entry("name", 2, Value::Text("a".into())),
                entry("http.max_body_bytes", 5, Value::Number(0x3_0000)),
                entry("limits.max_wotches", 7, Value::Flag(true)),
            ]
        );
    }

    #[test]
    fn what_is_no_value_of_ours_is_told() {
        for (text, part) in [
            ("a = -1", "-1"),
            ("a = 1.5", "1.5"),
            ("a = [1]", "list"),
            ("a = [\"x\", [\"y\"]]", "list"),
            ("a = {}", "section"),
            ("[a]\nb = 1", "section"),
        ] {
            let entries = read("x", text).unwrap();
            assert!(entries[0].value.as_ref().unwrap_err().contains(part), "{entries:?}");
        }
    }

    #[test]
    fn a_list_has_texts_in_it() {
        let list = |texts: &[&str]| Value::List(texts.iter().map(|text| (*text).to_owned()).collect());
        for texts in [&[][..], &["a"], &["with \"quotes\"", "b,c", "d/*"]] {
            let written = format!("a = {}", list(texts));
            assert_eq!(read("x", &written).unwrap()[0].value, Ok(list(texts)), "{written}");
        }
    }

    #[test]
    fn a_file_that_is_not_one_is_refused_with_its_line() {
        for (text, start) in
            [("name = \"a\"\n= 3\n", "f:2: "), ("a = 1\nb = 2\na = 3\n", "f:3: "), ("x", "f:1: ")]
        {
            let error = read("f", text).unwrap_err().to_string();
            assert!(error.starts_with(start) && !error.contains('\n'), "{error}");
        }
    }

    #[test]
    fn text_survives_writing_and_reading() {
        for text in ["", "plain", "a \"quoted\" \\ path", "tab\tline\nescape\u{1b}\u{7f}", "ünïcode ✓"] {
            let written = format!("a = {}", Value::Text(text.to_owned()));
            assert_eq!(read("x", &written).unwrap()[0].value, Ok(Value::Text(text.to_owned())), "{written}");
        }
    }
}
