//! The suite that every receiver passes, and three ways of leaving the check out that do not pass it.

use std::sync::Arc;

use leasehold_fence::conformance::{Load, Subject, Trouble, Violation, Writer, Written, run};
use leasehold_fence::redis::Fence;
use leasehold_fence::{Error, Receiver, Stale, Stamp};
use redis::aio::MultiplexedConnection;

use crate::redis::common::{ask, connect, fence, url};

/// How a value is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Right,
    Unchecked,
    CheckThenAct,
    Numbers,
}

struct Server {
    way: Way,
    fence: Fence,
}

struct Connection {
    way: Way,
    fence: Fence<MultiplexedConnection>,
    connection: MultiplexedConnection,
}

impl Subject for Server {
    type Writer = Connection;

    fn receiver(&self) -> Arc<dyn Receiver> {
        Arc::new(self.fence.clone())
    }

    async fn writer(&self) -> Result<Connection, Trouble> {
        let connection = connect(url()).await;
        let fence = Fence::new("redis", connection.clone());
        Ok(Connection { way: self.way, fence, connection })
    }

    async fn written(&self, name: &str) -> Result<Vec<Written>, Trouble> {
        let lines: Vec<String> = ask(url(), redis::cmd("LRANGE").arg(log(name)).arg(0).arg(-1)).await;
        let written = lines.iter().map(|line| {
            let (token, value) = line.split_once(' ').ok_or("a line has a token and a value")?;
            Ok(Written { token: token.parse()?, value: value.to_owned() })
        });
        written.collect()
    }
}

impl Writer for Connection {
    async fn write(&mut self, stamp: &Stamp, value: &str) -> Result<(), Error> {
        let (log, line) = (log(stamp.name()), format!("{} {value}", stamp.token()));
        let push = redis::cmd("RPUSH").arg(&log).arg(&line).to_owned();
        match self.way {
            Way::Right => {
                self.fence.write(stamp, redis::pipe().rpush(&log, &line)).await?;
            }
            Way::Unchecked => drop(self.send(&push).await),
            Way::CheckThenAct => {
                // The seal is a check that raises. The write is another request.
                self.fence.seal(stamp).await?;
                self.send(&push).await;
            }
            Way::Numbers => {
                let script = "local highest = tonumber(redis.call('HGET', KEYS[1], 'token') or 0)
                    if tonumber(ARGV[1]) < highest then return 0 end
                    redis.call('HSET', KEYS[1], 'token', ARGV[1])
                    return redis.call('RPUSH', KEYS[2], ARGV[2])";
                let fence = self.fence.key(stamp.name(), "fence");
                let mut eval = redis::cmd("EVAL");
                eval.arg(script).arg(2).arg(fence).arg(&log).arg(stamp.token()).arg(&line);
                if self.send(&eval).await == redis::Value::Int(0) {
                    let (name, token) = (stamp.name().to_owned(), stamp.token());
                    return Err(Stale { name, token, highest: None }.into());
                }
            }
        }
        Ok(())
    }
}

impl Connection {
    async fn send(&mut self, command: &redis::Cmd) -> redis::Value {
        command.query_async(&mut self.connection).await.unwrap()
    }
}

fn log(name: &str) -> String {
    format!("{{{name}}}:log")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_fence_passes() {
    let server = Server { way: Way::Right, fence: fence().await };
    let report = run(&server, "conformance", Load::default()).await.unwrap();
    println!("redis: {report}");
    assert_eq!((report.races, report.failed, report.unknown), (8, 0, 0));
    assert!(report.accepted > 50 && report.stale_tried > 50, "{report}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_way_without_the_check_is_found() {
    for (way, rule) in [
        (Way::Unchecked, "tokens never fall"),
        (Way::Numbers, "tokens never fall"),
        (Way::CheckThenAct, "tokens never fall"),
    ] {
        let server = Server { way, fence: fence().await };
        let load = Load { rounds: 40, ..Load::default() };
        match run(&server, &format!("planted-{way:?}"), load).await {
            Err(Violation::Broken { rule: found, .. }) => assert_eq!(found, rule, "{way:?}"),
            other => panic!("{way:?}: {other:?}"),
        }
    }
}
