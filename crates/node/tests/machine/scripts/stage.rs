//! Carries out the lines of a script.

use std::collections::BTreeMap;

use leasehold_core::protocol::{Query, Request, ToClient};
use leasehold_core::{Config, Millis, Policies, Token};
use leasehold_node::{ConnectionId, Fatal, Input, Options, Place};

use super::render;
use crate::actor::{Actor, name};
use crate::disk::Crash;
use crate::world::{Happening, World, embedded, machine, millis};

const READER: ConnectionId = ConnectionId(0);

pub(crate) struct Stage {
    world: Option<World>,
    actors: BTreeMap<String, Actor>,
    held: BTreeMap<String, Token>,
    said: Vec<String>,
}

impl Stage {
    pub(crate) fn new() -> Self {
        Self { world: None, actors: BTreeMap::new(), held: BTreeMap::new(), said: Vec::new() }
    }

    /// What the block gave.
    pub(crate) fn happened(&mut self) -> Vec<String> {
        std::mem::take(&mut self.said)
    }

    pub(crate) fn carry_out(&mut self, line: &str) {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            ["start", ref place @ ..] => {
                let options = Options { snapshot_entries: 6, ..Options::default() };
                let options = if place.contains(&"snapshots") { options } else { Options::default() };
                self.world = Some(World::begin(parse_place(place), Config::default(), options));
            }
            ["next", ref place @ ..] => self.world().place = parse_place(place),
            [who, ref what @ ..] if who.len() == 1 => self.act(who, what),
            ref other => {
                let failed = self.step(other);
                if let Err(error) = failed {
                    self.said.push(format!("the node stops: {error}"));
                }
            }
        }
        self.note();
    }

    fn world(&mut self) -> &mut World {
        self.world.as_mut().expect("a script begins with start")
    }

    /// What happens to the node, its disk and its clocks.
    fn step(&mut self, words: &[&str]) -> Result<(), Fatal> {
        let world = self.world();
        match *words {
            ["turn"] => world.try_turn()?,
            ["sync"] => {
                assert!(world.sync(), "no write is in flight");
                world.try_turn()?;
            }
            ["rest"] => {
                world.try_turn()?;
                while world.sync() {
                    world.try_turn()?;
                }
            }
            ["run", length] => world.run(millis(number(length))),
            ["pass", length] => world.pass(millis(number(length))),
            ["clocks", "begin", "anew"] => {
                world.clock = leasehold_core::holder::Reading { boot: 1_000, raw: 1_000 };
                world.oracle.forget_readings();
            }
            ["suspend", length] => world.clock.boot += number(length) * 1_000_000,
            ["back", length] => world.clock.raw -= number(length) * 1_000_000,
            ["saved"] => world.save_snapshot(),
            ["crash"] => world.try_crash(Crash::KeepsAcknowledged)?,
            ["crash", "written"] => world.try_crash(Crash::KeepsWritten(1))?,
            ["look", resource] => {
                world.ask(READER, Request::Read(Query::Lease(name(resource))));
            }
            ["status"] => {
                world.ask(READER, Request::Read(Query::Status));
            }
            ref other => panic!("{other:?} is not understood"),
        }
        Ok(())
    }

    /// What a client does.
    fn act(&mut self, who: &str, what: &[&str]) {
        let letter = who.as_bytes()[0];
        let actor = self.actors.entry(who.to_owned()).or_insert_with(|| Actor::new(letter - b'A' + 1, 0));
        let request = match *what {
            ["open", ttl, ref policies @ ..] => {
                actor.ttl = number(ttl);
                if let ["hard", hard] = policies {
                    actor.policies = Policies { hard: Millis::new(number(hard)), ..Policies::default() };
                }
                actor.open()
            }
            ["attach"] => actor.attach(),
            ["attach", "via", connection] => {
                actor.connection = ConnectionId(number(connection));
                actor.attach()
            }
            ["renew"] => actor.renew(),
            ["acquire", resource] => actor.acquire(resource, None),
            ["acquire", resource, "wait", length] => actor.acquire(resource, Some(number(length))),
            ["again", resource] => {
                actor.command = leasehold_core::CommandNumber::new(actor.command.get() - 1);
                actor.acquire(resource, None)
            }
            ["release", resource] => actor.release(resource, self.held[&format!("{who} {resource}")]),
            ["close"] => actor.close(),
            ["gone"] => {
                let gone = Input::Disconnected(actor.connection);
                let world = self.world.as_mut().expect("a script begins with start");
                return world.inbox.push(gone);
            }
            ref other => panic!("{other:?} is not understood"),
        };
        let connection = actor.connection;
        self.world().ask(connection, request);
    }

    /// Puts what was handed out into words, and remembers what the clients learn.
    fn note(&mut self) {
        let journal = std::mem::take(&mut self.world().journal);
        for happening in journal {
            match happening {
                Happening::Wrote(write) => self.said.push(render::write(&write)),
                // Every one of them is a grant or an ending that is sent as well.
                Happening::Changed(_) => {}
                Happening::SavesSnapshot(index) => self.said.push(format!("snapshot < up to entry {index}")),
                Happening::Sent(connection, message) => {
                    let who = self.hear(connection, &message);
                    self.said.push(format!("{who} < {}", render::message(&message)));
                }
            }
        }
    }

    fn hear(&mut self, connection: ConnectionId, message: &ToClient) -> String {
        let found = self.actors.iter_mut().find(|(_, actor)| actor.connection == connection);
        let Some((who, actor)) = found else {
            return if connection == READER {
                "reader".to_owned()
            } else {
                format!("connection {}", connection.0)
            };
        };
        if let Some(session) = render::opened(message) {
            actor.session = session;
        }
        if let ToClient::Items { items, .. } = message {
            for grant in items.iter().flat_map(render::grants) {
                self.held.insert(format!("{who} {}", grant.resource.as_str()), grant.token);
            }
        }
        who.clone()
    }
}

fn number(word: &str) -> u64 {
    word.parse().unwrap_or_else(|_| panic!("{word:?} is not a number"))
}

fn parse_place(words: &[&str]) -> Place {
    match *words {
        ["served", ..] => Place::Served,
        ["embedded", "boot", boot, "namespace", namespace, ref rest @ ..] => {
            let boot = u8::try_from(number(boot)).expect("a small number");
            embedded(machine(boot, number(namespace)), rest.contains(&"end-all"))
        }
        ref other => panic!("{other:?} is not a place"),
    }
}
