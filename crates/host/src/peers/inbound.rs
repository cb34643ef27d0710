//! Streams that peers have begun: who they are, whether they may speak, and what they say.

use std::io;
use std::sync::Arc;

use leasehold_core::protocol::{Failure, Response, ToClient};
use leasehold_node::ConnectionId;
use leasehold_node::members::CLUSTER_VERSION;
use leasehold_node::{Input, Membership};
use leasehold_wire::{
    PeerFrameReader, PeerHello, PeerPurpose, PeerRefusal, PeerVerdict, PeerWelcome, decode_peer_frame,
    encode_peer_welcome,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::{Shared, Work, convert, elsewhere, lives, opening, snapshots};
use crate::driver::ToLoop;
use crate::files::keep_met;

const READ_BYTES: usize = 256 * 1024;

pub(super) async fn serve(shared: Arc<Shared>, stream: std::net::TcpStream) {
    let stream = stream.set_nonblocking(true).and_then(|()| TcpStream::from_std(stream));
    let Ok(mut stream) = stream else { return };
    if let Err(error) = try_serve(&shared, &mut stream).await {
        tracing::debug!(%error, "a stream of a peer has ended");
    }
}

async fn try_serve(shared: &Arc<Shared>, stream: &mut TcpStream) -> io::Result<()> {
    let (hello, frames) = opening::hear(stream).await?;
    let membership = shared.membership();
    let verdict = judge(&membership, shared.introduction.id, &hello);
    let refused = match &verdict {
        Ok(()) => None,
        Err(refusal) => Some(refusal.clone()),
    };
    let verdict = verdict.map_or_else(PeerVerdict::Refused, |()| PeerVerdict::Accepted);
    let ours = shared.hello(hello.purpose, Some(hello.from));
    let welcome = PeerWelcome { hello: ours, verdict, members: membership.members.clone() };
    let mut bytes = Vec::new();
    encode_peer_welcome(&welcome, &mut bytes).map_err(io::Error::other)?;
    tokio::time::timeout(opening::OPENING_TIME, stream.write_all(&bytes)).await??;
    if let Some(refusal) = refused {
        let why = refusal.to_string();
        if let Some(more) = shared.not_let_in.say((hello.from, why.clone()), leasehold_clock::read()) {
            let (peer, address) = (&hello.name, &hello.address);
            tracing::warn!(
                peer,
                address,
                why,
                more,
                "a node was not let in; `more` such attempts were not told"
            );
        }
        lives::compare(shared, &hello);
        elsewhere::suspect(shared, &hello);
        return Ok(());
    }
    match hello.purpose {
        PeerPurpose::Ask => Ok(()),
        PeerPurpose::Messages => {
            if membership.is_blank()
                && hello.incarnation.is_known()
                && let Err(error) = keep_met(&shared.directory, hello.from, &hello.address)
            {
                tracing::debug!(%error, "whom this node has met is not kept");
            }
            // Whoever is not known here yet must be answered all the same.
            shared.work.send(Work::Met(hello.from, hello.address.clone()));
            let knows = Input::PeerKnows { member: hello.from, version: hello.cluster_version };
            shared.tell(ToLoop::Node(knows));
            let ends = shared.ends_of(hello.from);
            let outcome = tokio::select! {
                outcome = read_messages(shared, &hello, stream, frames) => outcome,
                () = ends.notified() => Ok(()),
            };
            shared.tell(ToLoop::Node(Input::PeerLost(hello.from)));
            outcome
        }
        PeerPurpose::Snapshot => {
            let message = snapshots::receive(stream, frames).await?;
            still_of_one_life(shared, &hello)?;
            let message = leasehold_node::PeerMessage::Raft(Box::new(message));
            shared.tell(ToLoop::Node(Input::Peer { from: hello.from, message }));
            Ok(())
        }
    }
}

/// Whether a node may speak.
fn judge(
    membership: &Membership,
    me: leasehold_core::protocol::MemberId,
    hello: &PeerHello,
) -> Result<(), PeerRefusal> {
    if hello.purpose == PeerPurpose::Ask {
        return Ok(());
    }
    if let Some(wanted) = hello.to.filter(|to| *to != me) {
        return Err(PeerRefusal::WrongMember { wanted, found: me });
    }
    if membership.removed.contains(&hello.from) {
        return Err(PeerRefusal::Removed);
    }
    let (theirs, ours) = (hello.incarnation, membership.incarnation);
    if theirs.is_known() && ours.is_known() && theirs != ours {
        return Err(PeerRefusal::OtherIncarnation { theirs, ours });
    }
    // A founded node that is not listed here may have been added by entries that have not arrived yet. A blank one was not.
    if ours.is_known() && !theirs.is_known() && membership.member(hello.from).is_none() {
        return Err(PeerRefusal::NotAMember);
    }
    let needs = membership.version.min(CLUSTER_VERSION);
    if hello.cluster_version < needs {
        return Err(PeerRefusal::TooOld { speaks: hello.cluster_version, needs });
    }
    Ok(())
}

async fn read_messages(
    shared: &Shared,
    hello: &PeerHello,
    stream: &mut TcpStream,
    mut frames: PeerFrameReader,
) -> io::Result<()> {
    let mut buffer = vec![0; READ_BYTES];
    loop {
        while let Some(frame) = frames.next_frame().map_err(io::Error::other)? {
            still_of_one_life(shared, hello)?;
            for message in decode_peer_frame(frame).map_err(io::Error::other)? {
                if let Some(answer) = not_understood(&message) {
                    shared.work.send(Work::Send(hello.from, answer));
                    continue;
                }
                let message = convert::from_wire(message).map_err(io::Error::other)?;
                let input = Input::Peer { from: hello.from, message };
                let sent = shared.inbox.send_when_there_is_room(ToLoop::Node(input)).await;
                sent.map_err(io::Error::other)?;
            }
        }
        match stream.read(&mut buffer).await? {
            0 => return Ok(()),
            count => frames.push(&buffer[..count]),
        }
    }
}

/// A node that was blank when this stream began may belong to another cluster by now.
fn still_of_one_life(shared: &Shared, hello: &PeerHello) -> io::Result<()> {
    let (theirs, ours) = (hello.incarnation, shared.membership().incarnation);
    if theirs.is_known() && ours.is_known() && theirs != ours {
        return Err(io::Error::other(PeerRefusal::OtherIncarnation { theirs, ours }));
    }
    Ok(())
}

/// The answer to a client's request that a node of a later release has passed on and this one does not know.
fn not_understood(message: &leasehold_wire::PeerMessage) -> Option<leasehold_node::PeerMessage> {
    let leasehold_wire::PeerMessage::Request { connection, id, request: Err(why) } = message else {
        return None;
    };
    let response = Response::Failed(Failure::BadRequest { why: why.clone() });
    let message = ToClient::Response { id: *id, response };
    Some(leasehold_node::PeerMessage::Reply { connection: ConnectionId(*connection), message })
}

#[cfg(test)]
mod tests {
    use super::*;
    use leasehold_core::protocol::{Incarnation, Member, MemberId, MemberRole};
    use leasehold_wire::PEER_VERSION;

    const ME: MemberId = MemberId(1);
    const THEM: MemberId = MemberId(2);

    fn membership() -> Membership {
        let member = |id, name| (Member::new(id, name, "127.0.0.1:7070").unwrap(), MemberRole::Voter);
        Membership {
            me: ME,
            incarnation: Incarnation(7),
            epoch: 0,
            version: CLUSTER_VERSION,
            members: vec![member(ME, "a"), member(THEM, "b")],
            removed: vec![MemberId(9)],
        }
    }

    fn blank() -> Membership {
        Membership { incarnation: Incarnation(0), members: Vec::new(), removed: Vec::new(), ..membership() }
    }

    fn hello(from: MemberId, incarnation: u128) -> PeerHello {
        PeerHello {
            version: PEER_VERSION,
            cluster_version: CLUSTER_VERSION,
            purpose: PeerPurpose::Messages,
            from,
            name: "b".into(),
            address: "127.0.0.1:7070".into(),
            to: Some(ME),
            incarnation: Incarnation(incarnation),
            initial_cluster: String::new(),
            max_ttl_ms: 1,
            drift_ppm: 1,
            program: String::new(),
            epoch: Some(0),
        }
    }

    #[test]
    fn members_blank_ones_and_those_not_heard_of_yet_may_speak() {
        for (ours, theirs) in [
            (membership(), hello(THEM, 7)),
            (membership(), hello(THEM, 0)),
            (membership(), hello(MemberId(5), 7)),
            (blank(), hello(THEM, 7)),
            (blank(), hello(THEM, 0)),
        ] {
            assert_eq!(judge(&ours, ME, &theirs), Ok(()));
        }
    }

    #[test]
    fn others_may_not_and_hear_why() {
        let other = PeerRefusal::OtherIncarnation { theirs: Incarnation(8), ours: Incarnation(7) };
        assert_eq!(judge(&membership(), ME, &hello(THEM, 8)), Err(other));
        assert_eq!(judge(&membership(), ME, &hello(MemberId(9), 7)), Err(PeerRefusal::Removed));
        assert_eq!(judge(&membership(), ME, &hello(MemberId(5), 0)), Err(PeerRefusal::NotAMember));
        let wrong = PeerRefusal::WrongMember { wanted: ME, found: MemberId(4) };
        assert_eq!(judge(&membership(), MemberId(4), &hello(THEM, 7)), Err(wrong));
        let old = PeerHello { cluster_version: CLUSTER_VERSION - 1, ..hello(THEM, 7) };
        let too_old = PeerRefusal::TooOld { speaks: CLUSTER_VERSION - 1, needs: CLUSTER_VERSION };
        assert_eq!(judge(&membership(), ME, &old), Err(too_old));
        let before = Membership { version: CLUSTER_VERSION - 1, ..membership() };
        assert!(judge(&before, ME, &old).is_ok(), "until all know the new version, an old one may come");
    }
}
