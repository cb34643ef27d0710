//! What is asked of the nodes, and what they answer.

use leasehold_core::Revision;
use leasehold_core::protocol::{
    ClusterCommand, ClusterRefusal, ClusterReply, ClusterView, Incarnation, Member, MemberId, MemberRole,
    MemberView, Query, ReadAnswer, Request, RequestId, Response, ToClient,
};

use super::{assert_client, assert_server, pieces};

fn member() -> Member {
    Member::new(MemberId(0x1122), "n1", "a:1").expect("a good member")
}

#[test]
fn commands_to_the_nodes() {
    let name = || "n1".to_owned();
    let commands = [
        Request::Cluster(ClusterCommand::Add(member())),
        Request::Cluster(ClusterCommand::Promote { name: name() }),
        Request::Cluster(ClusterCommand::Remove { name: name() }),
        Request::Cluster(ClusterCommand::Transfer { to: Some(name()) }),
        Request::Cluster(ClusterCommand::Transfer { to: None }),
        Request::Read(Query::Cluster),
    ];
    let requests: Vec<_> = (1..).map(RequestId).zip(commands).collect();
    let expected = pieces(&[
        "0000004a",                                // 74 bytes
        "0a 18 08 01 5a 14 0a 12",                 // message, id 1, cluster, add
        "09 2211000000000000 12026e31 1a03613a31", // id, n1 at a:1
        "0a 08 08 02 5a 04 12026e31",              // message, id 2, promote n1
        "0a 08 08 03 5a 04 1a026e31",              // message, id 3, remove n1
        "0a 0a 08 04 5a 06 2204 0a026e31",         // message, id 4, transfer to n1
        "0a 06 08 05 5a 02 2200",                  // message, id 5, transfer
        "0a 06 08 06 3a 02 4200",                  // message, id 6, read cluster
    ]);
    assert_client(&requests, &expected);
}

#[test]
fn answers_of_the_nodes() {
    let view = ClusterView {
        incarnation: Incarnation(0x0102),
        epoch: 3,
        version: 1,
        leader: MemberId(0x1122),
        term: 4,
        committed: 300,
        members: vec![MemberView {
            member: member(),
            role: MemberRole::Voter,
            matched: 9,
            reachable: true,
            receiving_snapshot: true,
        }],
    };
    let refusal = ClusterRefusal::NoMajorityLeft { name: "n1".into(), reachable: 1, voters: 2 };
    let answers = [
        Response::Cluster(ClusterReply::Changed { revision: Revision::new(300) }),
        Response::Cluster(ClusterReply::Transferred { to: MemberId(0x1122) }),
        Response::Cluster(ClusterReply::Refused(refusal)),
        Response::Read { revision: Revision::new(5), answer: ReadAnswer::Cluster(view) },
    ];
    let messages: Vec<_> =
        (1..).map(RequestId).zip(answers).map(|(id, response)| ToClient::Response { id, response }).collect();
    let expected = pieces(&[
        "0000007e",                                            // 126 bytes
        "0a 09 0a 07 08 01 2a 03 08 ac02",                     // response 1: changed by entry 300
        "0a 0f 0a 0d 08 02 2a 09 11 2211000000000000",         // response 2: transferred
        "0a 12 0a 10 08 03 2a 0c 1a 0a 4a 08",                 // response 3: refused
        "0a026e31 1001 1802",                                  // n1, 1 of 2 voters
        "0a 4c 0a 4a 08 04 1a 46 4a 42",                       // response 4: read, cluster
        "0a 10 00000000000000000000000000000102 1003 1801",    // incarnation, epoch 3, version 1
        "21 2211000000000000 2804 30ac02",                     // leader, term 4, committed 300
        "3a 1c 0a 12 09 2211000000000000 12026e31 1a03613a31", // n1 at a:1
        "1001 1809 2001 2801",                                 // voter, matched 9, reachable, receives
        "40 05",                                               // revision 5
    ]);
    assert_server(&messages, &expected);
}
