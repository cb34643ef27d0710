//! `docs/guides/fence-sql.md`, as it stands.

use std::path::Path;
use std::process::Command;

use crate::postgres::world::{World, refused_for, run, stamp};

const GUIDE: &str = include_str!("../../../../docs/guides/fence-sql.md");
/// Printed behind every command: no program prints this character.
const MARK: &str = "\u{1e}";

/// The commands of the guide's transcripts, and what each is said to print.
fn exchanges() -> Vec<(String, Vec<&'static str>)> {
    let mut found: Vec<(String, Vec<&str>)> = Vec::new();
    let mut is_inside = false;
    for line in GUIDE.lines() {
        if line.starts_with("```") {
            is_inside = line == "```console";
        } else if is_inside {
            match (line.strip_prefix("$ "), found.last_mut()) {
                (Some(command), _) => found.push((command.to_owned(), Vec::new())),
                (None, Some((command, printed))) => match line.strip_prefix("> ") {
                    Some(more) if printed.is_empty() => command.extend(["\n", more]),
                    _ if line.is_empty() => {}
                    _ => printed.push(line),
                },
                (None, None) => panic!("{line:?} is no command"),
            }
        }
    }
    found
}

/// A line `...` stands for any lines, and `...` in a line for any text.
fn is_as_said(said: &[&str], printed: &[&str]) -> bool {
    match (said.split_first(), printed.split_first()) {
        (None, None) => true,
        (Some((&"...", rest)), _) => (0..=printed.len()).any(|skipped| is_as_said(rest, &printed[skipped..])),
        (Some((line, said)), Some((first, printed))) => {
            let mut rest = *first;
            let mut parts = line.split("...");
            let begins = parts.next().unwrap();
            let fits = rest.starts_with(begins) && {
                rest = &rest[begins.len()..];
                let parts: Vec<_> = parts.collect();
                parts.iter().enumerate().all(|(nth, part)| match rest.find(part) {
                    Some(_) if nth + 1 == parts.len() => {
                        let ends = rest.ends_with(part);
                        rest = "";
                        ends
                    }
                    Some(at) => {
                        rest = &rest[at + part.len()..];
                        true
                    }
                    None => false,
                })
            };
            fits && rest.is_empty() && is_as_said(said, printed)
        }
        _ => false,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_transcript_of_the_guide_prints_what_stands_below_it() {
    let world = World::bare().await;
    let options = world.pool.connect_options();
    let exchanges = exchanges();
    // Where Debian keeps the programs of its newest version.
    let mut script =
        "PATH=$(ls -d /usr/lib/postgresql/*/bin | sort -V | tail -n 1):$PATH\nexec 2>&1\nset -m\n".to_owned();
    for (command, _) in &exchanges {
        script.extend([command.as_str(), "\nprintf '\\n", MARK, "\\n'\n"]);
    }
    // What was left running in the background is a group of processes of its own.
    script.push_str("for left in $(jobs -p); do kill -- -$left; done\n");
    let mut shell = Command::new("bash");
    shell.arg("-c").arg(script).current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("src/postgres"));
    shell.env("PGHOST", options.get_host()).env("PGPORT", options.get_port().to_string());
    shell.env("PGUSER", options.get_username()).env("PGDATABASE", options.get_database().unwrap());
    shell
        .env("PSQLRC", "/dev/null")
        .env("LC_ALL", "C.UTF-8")
        .env("PGOPTIONS", "-c client_min_messages=warning");
    let printed = tokio::task::spawn_blocking(move || shell.output().unwrap()).await.unwrap();
    let printed = String::from_utf8(printed.stdout).unwrap();
    let printed: Vec<&str> = printed.split(&format!("\n{MARK}\n")).collect();
    assert!(exchanges.len() > 8, "{exchanges:?}");
    for ((command, said), printed) in exchanges.iter().zip(printed.iter()) {
        // A function that returns nothing prints a line of blanks.
        let lines: Vec<&str> = printed.lines().map(str::trim_end).filter(|line| !line.is_empty()).collect();
        assert!(is_as_said(said, &lines), "{command}\nis said to print\n{said:#?}\nand prints\n{lines:#?}");
    }
    assert_eq!(printed.len(), exchanges.len() + 1, "every command was run");
}

#[test]
fn a_transcript_that_is_not_true_is_found() {
    assert!(is_as_said(&["a ... c", "...", "d"], &["a b c", "x", "y", "d"]));
    for (said, printed) in [
        (vec!["a"], vec!["b"]),
        (vec!["a"], vec![]),
        (vec![], vec!["a"]),
        (vec!["a ... c"], vec!["a b d"]),
        (vec!["a ... c"], vec!["a b c d"]),
        (vec!["...", "d"], vec!["x"]),
    ] {
        assert!(!is_as_said(&said, &printed), "{said:?} {printed:?}");
    }
}

// From here to the end of the function it stands in the guide.
use leasehold_fence::postgres::Fence;
use leasehold_fence::{Authority, Error};
use sqlx::PgPool;

async fn three_lines(pool: PgPool, guard: impl Authority) -> Result<(), Error> {
    let fence = Fence::new(pool);
    fence
        .transaction(&guard, async |tx| {
            sqlx::query("UPDATE report SET body = $1 WHERE id = 7").bind("done").execute(&mut *tx).await?;
            Ok(())
        })
        .await?;
    Ok(())
}

async fn one_line(
    pool: PgPool,
    fence: Fence,
    guard: impl Authority,
) -> Result<(), Box<dyn std::error::Error>> {
    let mut tx = pool.begin().await?;
    fence.enter(&mut tx, &guard).await?; // the first statement
    sqlx::query("UPDATE report SET body = body || '!' WHERE id = 7").execute(&mut *tx).await?;
    Ok(tx.commit().await?)
}

#[tokio::test]
async fn the_lines_of_the_guide_write_and_are_refused() {
    let world = World::new().await;
    run(
        &world.pool,
        "CREATE TABLE report (id int PRIMARY KEY, body text); INSERT INTO report VALUES (7, '')",
    )
    .await;
    let body = async || -> String {
        sqlx::query_scalar("SELECT body FROM report").fetch_one(&world.pool).await.unwrap()
    };
    three_lines(world.pool.clone(), stamp(34)).await.unwrap();
    one_line(world.pool.clone(), world.fence.clone(), stamp(34)).await.unwrap();
    assert_eq!(body().await, "done!");
    assert_eq!(refused_for(three_lines(world.pool.clone(), stamp(33)).await), 34);
    let refused = one_line(world.pool.clone(), world.fence.clone(), stamp(33)).await;
    assert_eq!(refused_for::<()>(Err(*refused.unwrap_err().downcast().unwrap())), 34);
    assert_eq!(body().await, "done!");
}
