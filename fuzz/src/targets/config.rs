//! The file of a configuration.

use std::path::Path;

use leasehold_server::config::{Config, Effective, KEYS, Layers};

use crate::Shape;

fn resolve(text: &str) -> Result<Effective, String> {
    let file = Some(("leasehold.toml".into(), text.to_owned()));
    let layers = Layers { file, ..Layers::default() };
    layers.resolve(Some(Path::new("/data"))).map_err(|error| error.to_string())
}

pub(super) fn seeds() -> Vec<Vec<u8>> {
    let example = include_str!("../../../config.example.toml");
    let mut seeds = vec![example.as_bytes().to_vec()];
    let effective = resolve("").expect("an empty file is good");
    seeds.push(effective.to_toml().into_bytes());
    let config = Config::new("/data");
    for key in &KEYS {
        let line = match key.name.split_once('.') {
            Some((section, name)) => format!("[{section}]\n{name} = {}\n", key.get(&config)),
            None => format!("{} = {}\n", key.name, key.get(&config)),
        };
        seeds.push(line.into_bytes());
    }
    let cluster =
        "name = \"n1\"\ninsecure = true\n[cluster]\nadvertise = \"a:1\"\ninitial = \"n1=a:1,n2=b:2\"\n";
    seeds.push(cluster.as_bytes().to_vec());
    seeds
}

pub(super) fn check(input: &[u8]) -> Shape {
    let Ok(text) = std::str::from_utf8(input) else { return Shape::of(&"no text") };
    let resolved = resolve(text);
    if let Ok(effective) = &resolved {
        let written = effective.to_toml();
        let again =
            resolve(&written).unwrap_or_else(|why| panic!("what was written is refused: {why}\n{written}"));
        assert_eq!(again.config, effective.config, "a configuration comes out as another");
    }
    match resolved {
        Ok(effective) => {
            let chosen = effective.settings().map(|(key, _, source)| (key.name, source.to_string()));
            Shape::of(&chosen.collect::<Vec<_>>())
        }
        Err(why) => Shape::of_words(&why),
    }
}
