//! The socket of a directory: accepting connections.

use std::sync::Arc;
use std::time::Duration;

use tokio::net::UnixListener;
use tokio::sync::watch;

use crate::door::Door;

/// Connections at once. Each costs a descriptor; a client needs one.
const MAX_CONNECTIONS: usize = 10_000;

/// Accepts connections until `stop` says so or its sender is gone.
pub(crate) async fn accept(listener: UnixListener, door: Door, mut stop: watch::Receiver<bool>) {
    let open = Arc::new(());
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            _ = stop.changed() => return,
        };
        match accepted {
            Ok((stream, _)) => {
                if Arc::strong_count(&open) > MAX_CONNECTIONS {
                    // Closed at once; the client backs off and comes again.
                    continue;
                }
                let (door, mut stop, counted) = (door.clone(), stop.clone(), Arc::clone(&open));
                tokio::spawn(async move {
                    let (read, write) = stream.into_split();
                    tokio::select! {
                        () = door.serve(read, write) => {}
                        _ = stop.changed() => {}
                    }
                    drop(counted);
                });
            }
            // Out of descriptors, or a connection that ended before it was taken: the listener itself is well.
            Err(_) => tokio::time::sleep(Duration::from_millis(10)).await,
        }
    }
}
