//! The settings of a server that decide whether it keeps a fence: those of its log, and those of its memory.
//!
//! Nothing is refused for them. They may change at any time, a connection may not be allowed to ask, and a fence that may be lost in a crash is
//! better than none.

use std::collections::HashMap;

use redis::aio::ConnectionLike;
use redis::{ErrorKind, RedisError};

use crate::receiver::Hazard;

const LOG: &str = "appendonly";
const SYNC: &str = "appendfsync";
const POLICY: &str = "maxmemory-policy";
const MEMORY: &str = "maxmemory";

const LOG_WANTED: &str = "yes, with appendfsync always";
const SYNC_WANTED: &str = "always";
const POLICY_WANTED: &str = "noeviction or a volatile one";

/// What could make this server forget a fence.
pub(super) async fn hazards(connection: &mut impl ConnectionLike) -> Result<Vec<Hazard>, RedisError> {
    let mut found = Vec::new();
    match get(connection, LOG).await? {
        Err(why) => found.push(Hazard::NotKnown { setting: LOG, why, wanted: LOG_WANTED }),
        Ok(log) if log != "yes" => found.push(Hazard::Setting {
            setting: LOG,
            found: log,
            so: "a server that is killed or restarted forgets the fence, and takes stale writes until the next seal",
            wanted: LOG_WANTED,
        }),
        Ok(_) => match get(connection, SYNC).await? {
            Err(why) => found.push(Hazard::NotKnown { setting: SYNC, why, wanted: SYNC_WANTED }),
            Ok(sync) if sync != "always" => found.push(Hazard::Setting {
                setting: SYNC,
                found: sync,
                so: "a server that dies may forget the last raises, and takes stale writes until the next seal",
                wanted: SYNC_WANTED,
            }),
            Ok(_) => {}
        },
    }
    match get(connection, POLICY).await? {
        Err(why) => found.push(Hazard::NotKnown { setting: POLICY, why, wanted: POLICY_WANTED }),
        // These throw away keys that never expire. Without a limit there is nothing to make room for.
        Ok(policy) if policy.starts_with("allkeys") => {
            if get(connection, MEMORY).await?.as_deref() != Ok("0") {
                found.push(Hazard::Setting {
                    setting: POLICY,
                    found: policy,
                    so: "a server whose memory is full throws the fence away as any key, and takes stale writes until the next seal",
                    wanted: POLICY_WANTED,
                });
            }
        }
        Ok(_) => {}
    }
    Ok(found)
}

/// One setting, or why the server does not tell. Each is asked for by itself: several at once are for servers from version 7 on.
async fn get(
    connection: &mut impl ConnectionLike,
    setting: &'static str,
) -> Result<Result<String, String>, RedisError> {
    let mut asked = redis::cmd("CONFIG");
    let told = asked.arg("GET").arg(setting).query_async::<HashMap<String, String>>(connection).await;
    match told {
        Ok(mut told) => Ok(told.remove(setting).ok_or_else(|| "the server has no such setting".to_owned())),
        // It answered: the command is forbidden, or has another name here.
        Err(error) if matches!(error.kind(), ErrorKind::Server(_) | ErrorKind::Extension) => {
            Ok(Err(error.to_string()))
        }
        Err(error) => Err(error),
    }
}
