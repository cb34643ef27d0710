//! The messages that all contenders carry: about as large as real commands and answers.
//!
//! They are stand-ins. Fields exist to give the bytes and the decoding work of the real thing (a name, a
//! few numbers), and nothing here is the wire format of the product.

use super::clock::cpu_ns;

/// One operation of a session: about 40 bytes encoded.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Op {
    #[prost(uint64, tag = "1")]
    pub number: u64,
    #[prost(enumeration = "Kind", tag = "2")]
    pub kind: i32,
    #[prost(string, tag = "3")]
    pub resource: String,
    #[prost(uint32, tag = "4")]
    pub ttl_ms: u32,
    #[prost(fixed64, tag = "5")]
    pub token: u64,
}

/// What the server is asked to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, prost::Enumeration)]
#[repr(i32)]
pub(crate) enum Kind {
    /// Answer at once.
    Work = 0,
    /// Answer with the server's processor time so far, in the place of the token.
    MarkCpu = 1,
}

/// Operations of one session, sent together.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct OpFrame {
    #[prost(uint32, tag = "1")]
    pub session: u32,
    #[prost(uint64, tag = "2")]
    pub seen: u64,
    #[prost(message, repeated, tag = "3")]
    pub ops: Vec<Op>,
}

/// The answer to one operation: about 40 bytes encoded.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Answer {
    #[prost(uint64, tag = "1")]
    pub number: u64,
    #[prost(uint64, tag = "2")]
    pub event: u64,
    #[prost(string, tag = "3")]
    pub resource: String,
    #[prost(fixed64, tag = "4")]
    pub token: u64,
}

/// Answers to one frame of operations.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct AnswerFrame {
    #[prost(uint32, tag = "1")]
    pub session: u32,
    #[prost(message, repeated, tag = "2")]
    pub answers: Vec<Answer>,
}

/// A frame of `ops` ordinary operations of `session`, numbered from `first`.
pub(crate) fn work_frame(session: u32, first: u64, ops: u32) -> OpFrame {
    let op = |i: u32| Op {
        number: first + u64::from(i),
        kind: Kind::Work.into(),
        resource: "shards/orders/0042".to_owned(),
        ttl_ms: 10_000,
        token: 1 << 48 | first,
    };
    OpFrame { session, seen: first, ops: (0..ops).map(op).collect() }
}

/// A frame that asks the server for its processor time.
pub(crate) fn mark_frame(session: u32) -> OpFrame {
    let mut frame = work_frame(session, 0, 1);
    for op in &mut frame.ops {
        op.kind = Kind::MarkCpu.into();
    }
    frame
}

/// The server's whole logic: one answer for each operation.
pub(crate) fn answer(frame: OpFrame) -> AnswerFrame {
    let one = |op: Op| Answer {
        number: op.number,
        event: op.number,
        token: if op.kind() == Kind::MarkCpu { cpu_ns() } else { op.token },
        resource: op.resource,
    };
    AnswerFrame { session: frame.session, answers: frame.ops.into_iter().map(one).collect() }
}

#[cfg(test)]
mod tests {
    use prost::Message;

    use super::*;

    #[test]
    fn operation_and_answer_are_about_forty_bytes() {
        let frame = work_frame(3, 5_000, 1);
        let op = frame.ops[0].encoded_len();
        let ans = answer(frame).answers[0].encoded_len();
        assert!((32..=44).contains(&op), "operation takes {op} bytes");
        assert!((32..=44).contains(&ans), "answer takes {ans} bytes");
    }

    #[test]
    fn every_operation_is_answered_in_order() {
        let numbers: Vec<u64> = answer(work_frame(1, 7, 3)).answers.iter().map(|a| a.number).collect();
        assert_eq!(numbers, [7, 8, 9]);
    }

    #[test]
    fn a_mark_is_answered_with_processor_time() {
        let before = cpu_ns();
        let token = answer(mark_frame(0)).answers[0].token;
        assert!((before..=cpu_ns()).contains(&token));
    }
}
