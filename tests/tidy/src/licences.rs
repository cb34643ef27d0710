//! Licences, sources and versions of dependencies, as `deny.toml` allows them, from what `cargo metadata` says.
//!
//! What it deliberately does not do: it reads no text of a licence and knows no vulnerabilities. cargo-deny does both, with the same file.

use serde_json::Value;
use toml::Table;

use crate::Complaint;

/// What is wrong with the dependencies of a workspace.
pub fn check(metadata: &Value, deny: &Table) -> Vec<Complaint> {
    let words = |section: &str, key: &str| -> Vec<String> {
        let list = deny.get(section).and_then(|section| section.get(key)?.as_array());
        list.into_iter().flatten().filter_map(|word| Some(word.as_str()?.to_owned())).collect()
    };
    let (allowed, registries) = (words("licenses", "allow"), words("sources", "allow-registry"));
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    // The others are for machines that nothing is built for.
    let used: Vec<Value> =
        list(&metadata["resolve"]["nodes"]).iter().map(|node| node["id"].clone()).collect();
    let mut complaints = Vec::new();
    if used.is_empty() {
        complaints.push("cargo metadata names no package".to_owned());
    }
    for package in list(&metadata["packages"]).iter().filter(|package| used.contains(&package["id"])) {
        let name = package["name"].as_str().unwrap_or_default();
        let licence = package["license"].as_str().unwrap_or_default();
        let excepted = exceptions(deny, name);
        if !permits(licence, &|word| allowed.iter().chain(&excepted).any(|allowed| allowed == word)) {
            complaints.push(format!("{name}: its licence '{licence}' is not allowed by deny.toml"));
        }
        let source = package["source"].as_str();
        let known = |source: &str| {
            registries.iter().any(|registry| source.strip_prefix("registry+") == Some(registry))
        };
        if let Some(source) = source.filter(|source| !known(source)) {
            complaints.push(format!("{name}: its source {source} is not allowed by deny.toml"));
        }
        for dependency in list(&package["dependencies"]) {
            if dependency["req"] == "*" && dependency["path"].is_null() {
                complaints.push(format!("{name}: any version of {} will do: name one", dependency["name"]));
            }
        }
    }
    complaints
}

/// Licences that only this package may have.
fn exceptions(deny: &Table, package: &str) -> Vec<String> {
    let all = deny.get("licenses").and_then(|licences| licences.get("exceptions")?.as_array());
    let own = all
        .into_iter()
        .flatten()
        .filter(|one| one.get("crate").and_then(|name| name.as_str()) == Some(package));
    let allowed = own.filter_map(|one| one.get("allow")?.as_array()).flatten();
    allowed.filter_map(|word| Some(word.as_str()?.to_owned())).collect()
}

/// Whether a licence expression (`(MIT OR Apache-2.0) AND ISC`) is met by licences that are allowed. An older form has `/` for OR.
fn permits(expression: &str, allowed: &dyn Fn(&str) -> bool) -> bool {
    let spaced = expression.replace('/', " OR ").replace('(', " ( ").replace(')', " ) ");
    let mut words = spaced.split_whitespace().peekable();
    either(&mut words, allowed) == Some(true) && words.next().is_none()
}

type Words<'a> = std::iter::Peekable<std::str::SplitWhitespace<'a>>;

fn either(words: &mut Words<'_>, allowed: &dyn Fn(&str) -> bool) -> Option<bool> {
    let mut met = both(words, allowed)?;
    while words.next_if_eq(&"OR").is_some() {
        met |= both(words, allowed)?;
    }
    Some(met)
}

fn both(words: &mut Words<'_>, allowed: &dyn Fn(&str) -> bool) -> Option<bool> {
    let mut met = one(words, allowed)?;
    while words.next_if_eq(&"AND").is_some() {
        met &= one(words, allowed)?;
    }
    Some(met)
}

fn one(words: &mut Words<'_>, allowed: &dyn Fn(&str) -> bool) -> Option<bool> {
    let word = words.next()?;
    if word == "(" {
        let met = either(words, allowed)?;
        return words.next_if_eq(&")").map(|_| met);
    }
    match words.next_if_eq(&"WITH") {
        Some(_) => Some(allowed(&format!("{word} WITH {}", words.next()?))),
        None => Some(allowed(word)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const DENY: &str = r#"
[licenses]
allow = ["MIT", "ISC", "Apache-2.0 WITH LLVM-exception"]
exceptions = [{ allow = ["NCSA"], crate = "odd" }]
[sources]
allow-registry = ["https://known"]
"#;

    fn found(package: &Value) -> Vec<Complaint> {
        let metadata = json!({ "packages": [package], "resolve": { "nodes": [{ "id": 1 }] } });
        check(&metadata, &DENY.parse().unwrap())
    }

    fn package(name: &str, licence: &str) -> Value {
        json!({ "id": 1, "name": name, "license": licence, "source": "registry+https://known", "dependencies": [] })
    }

    #[test]
    fn a_licence_is_met_by_its_alternatives_all_its_parts_and_its_exceptions() {
        for good in [
            "MIT",
            "GPL-3.0 OR MIT",
            "GPL-3.0/MIT",
            "(GPL-3.0 OR MIT) AND ISC",
            "Apache-2.0 WITH LLVM-exception",
        ] {
            assert_eq!(found(&package("a", good)), Vec::<Complaint>::new(), "{good}");
        }
        for bad in
            ["", "GPL-3.0", "MIT AND GPL-3.0", "(MIT", "MIT ISC", "Apache-2.0", "MIT WITH LLVM-exception"]
        {
            assert_eq!(found(&package("a", bad)).len(), 1, "{bad}");
        }
    }

    #[test]
    fn an_exception_is_for_one_package() {
        assert!(found(&package("odd", "MIT AND NCSA")).is_empty());
        assert_eq!(found(&package("even", "MIT AND NCSA")).len(), 1);
    }

    #[test]
    fn a_source_is_a_known_registry_or_a_path() {
        for (source, complaints) in
            [(json!(null), 0), (json!("registry+https://other"), 1), (json!("git+https://known"), 1)]
        {
            let mut package = package("a", "MIT");
            package["source"] = source;
            assert_eq!(found(&package).len(), complaints, "{package}");
        }
    }

    #[test]
    fn a_dependency_names_a_version_or_a_path() {
        for (dependency, complaints) in [
            (json!({ "name": "b", "req": "^1" }), 0),
            (json!({ "name": "b", "req": "*" }), 1),
            (json!({ "name": "b", "req": "*", "path": "../b" }), 0),
        ] {
            let mut package = package("a", "MIT");
            package["dependencies"] = json!([dependency]);
            assert_eq!(found(&package).len(), complaints, "{package}");
        }
    }

    #[test]
    fn a_package_that_is_not_used_is_not_looked_at_and_no_package_at_all_is_a_mistake() {
        let metadata = json!({ "packages": [package("a", "GPL-3.0")], "resolve": { "nodes": [] } });
        assert_eq!(check(&metadata, &DENY.parse().unwrap()), ["cargo metadata names no package"]);
    }
}
