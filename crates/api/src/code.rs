//! The codes of errors: one word each, with its kind, what it is over HTTP and gRPC, and the words of the reference.

use std::fmt;

/// The three kinds of answer that are not what was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// No effect, now or later.
    Refused,
    /// Not asked, or not taken in: no effect.
    Failed,
    /// Sent on its way: it may or may not have taken effect.
    Unknown,
}

impl Kind {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Refused, Self::Failed, Self::Unknown];

    /// In one word.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Refused => "refused",
            Self::Failed => "failed",
            Self::Unknown => "unknown",
        }
    }
}

/// The status codes of gRPC that are used, with their numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(i32)]
pub enum GrpcCode {
    /// It may or may not have taken effect.
    Unknown = 2,
    /// The request cannot be, whatever the state.
    InvalidArgument = 3,
    /// It did not arrive in time.
    DeadlineExceeded = 4,
    /// It is not there, or not any more.
    NotFound = 5,
    /// The session is not the caller's own.
    PermissionDenied = 7,
    /// A limit is reached.
    ResourceExhausted = 8,
    /// The state does not allow it.
    FailedPrecondition = 9,
    /// Another client was first.
    Aborted = 10,
    /// The place to go on from does not exist (any more).
    OutOfRange = 11,
    /// No such call.
    Unimplemented = 12,
    /// Nothing is taken in now.
    Unavailable = 14,
}

impl GrpcCode {
    /// The number on the wire.
    pub const fn number(self) -> i32 {
        self as i32
    }
}

impl fmt::Display for GrpcCode {
    /// As gRPC spells it: `NOT_FOUND`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, letter) in format!("{self:?}").char_indices() {
            if place > 0 && letter.is_ascii_uppercase() {
                f.write_str("_")?;
            }
            write!(f, "{}", letter.to_ascii_uppercase())?;
        }
        Ok(())
    }
}

/// A code, and everything that is said about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Code {
    /// The word.
    pub name: &'static str,
    /// Whether it was refused, failed, or is unknown.
    pub kind: Kind,
    /// The status of an HTTP response.
    pub http: u16,
    /// The status of a gRPC call.
    pub grpc: GrpcCode,
    /// What it means, in the words of the reference.
    pub meaning: &'static str,
    /// What to do about it.
    pub advice: &'static str,
}

/// The code with this name.
pub fn find(name: &str) -> Option<&'static Code> {
    CODES.iter().find(|code| code.name == name)
}

macro_rules! codes {
    ($(code($name:literal) $kind:ident $http:literal $grpc:ident $meaning:literal $advice:literal;)*) => {
        &[$(Code {
            name: $name,
            kind: Kind::$kind,
            http: $http,
            grpc: GrpcCode::$grpc,
            meaning: $meaning,
            advice: $advice,
        }),*]
    };
}

/// Every code that there is, each once. docs/reference/errors.md is written from this table.
///
/// Over HTTP it is 400 for what cannot be in any state, 404 for what is not there, 409 for what this state does not allow, 410 for what is over and 429
/// for limits. An unknown outcome is 500: gateways send again what got 502 to 504, and may do it twice.
pub const CODES: &[Code] = codes! {
    code("session-ended") Refused 410 NotFound
        "the session is closed, expired, or of another state of the store"
        "open a new one; the outcome of its unanswered requests is unknown";
    code("session-overdue") Refused 409 FailedPrecondition
        "the session was not renewed in time and gets no grants"
        "renew, then ask again; the library does";
    code("older-attach") Refused 409 FailedPrecondition
        "a newer connection has taken over the session"
        "use the newer one; two processes must not share a session";
    code("command-gap") Refused 409 FailedPrecondition
        "a command before this one is missing"
        "resend from the missing one; the library does";
    code("seen-ahead") Refused 409 FailedPrecondition
        "the client has seen what does not exist: the store was set back"
        "open a new session";
    code("too-many-unseen") Refused 429 ResourceExhausted
        "the client does not report what it has processed"
        "attach again; the library does";
    code("wrong-session-kind") Refused 409 FailedPrecondition
        "a stream frame for a plain session, or the reverse"
        "open a session of the right kind";
    code("ttl-out-of-range") Refused 400 InvalidArgument
        "the ttl is below 500 ms or above the store's maximum"
        "choose one in between";
    code("bad-numbers") Refused 400 InvalidArgument
        "ttl, renewal interval, margin and round trip do not fit together; the message shows both sides, `inequality` names it"
        "`leasehold plan` prints the nearest numbers that fit";
    code("bad-policies") Refused 400 InvalidArgument
        "grace, hard limit or delay above a day, or a hard limit below the grace"
        "change them";
    code("bad-request") Refused 400 InvalidArgument
        "no resource, too many, one named twice, slots outside 1 to 10000, a length above a day, or an unknown request"
        "change it; for a newer request upgrade the service";
    code("wrong-kind") Refused 409 FailedPrecondition
        "the name has slots and the request none, or the reverse, or the numbers differ"
        "ask as all other clients do; an operator can change the kind";
    code("not-free") Refused 409 Aborted
        "held, queued for, or kept free for a while: see [below](#why-a-resource-is-not-free)"
        "wait, or ask the holder with `leasehold release`";
    code("not-holder") Refused 409 FailedPrecondition
        "the session does not hold that token"
        "stop acting: the lease is over";
    code("not-current") Refused 409 FailedPrecondition
        "the token is not that of a present lease"
        "look with `leasehold get`; a later lease was not touched";
    code("not-held") Refused 404 NotFound
        "no holder has the resource"
        "nothing to release or revoke";
    code("no-such-wait") Refused 404 NotFound
        "there is no such wait, or not any more"
        "nothing";
    code("no-such-successor") Refused 404 NotFound
        "no client waits that could be offered the lease"
        "release it instead";
    code("no-offer") Refused 404 NotFound
        "this session has no such offer"
        "acquire as usual";
    code("limit-reached") Refused 429 ResourceExhausted
        "a [limit](limits.md) of the store"
        "the message names it; end what is not needed";
    code("tokens-exhausted") Refused 409 FailedPrecondition
        "all tokens of this epoch are used: 2^48 grants"
        "restore with a new epoch";
    code("no-room") Refused 507 ResourceExhausted
        "the service's disk is full; on session streams only, where each command uses up its number (single calls get `unavailable`)"
        "make room; the service then continues by itself";
    code("not-yet-in-use") Refused 409 FailedPrecondition
        "a member of the cluster runs a release that does not know the command; it is not in the log"
        "upgrade that member, then ask again";
    code("number-reused") Refused 409 FailedPrecondition
        "another call of the session had that number"
        "give each call a number of its own; a process that lost count opens another session";
    code("number-settled") Unknown 500 Unknown
        "the client has said that it does not want that number any more: nothing was done now, and what came of it before is forgotten"
        "renew, and look at the lists";
    code("token-ahead") Refused 409 FailedPrecondition
        "the token is above all granted here: the state may have been set back. The resource is granted to no client; an [alarm](../guides/operate-a-cluster.md#an-alarm-is-raised) is raised"
        "stop acting; an operator looks with `leasehold alarms`";
    code("no-such-alarm") Refused 404 NotFound
        "the resource has no alarm of that token"
        "look with `leasehold alarms`: a greater token may have been shown since";
    code("wait-ended") Refused 409 Aborted
        "the wait ended without a lease; `why` is `timed-out`, `kind-changed`, `offer-ended` or `cancelled`"
        "ask again, or give up";
    code("outcome-unknown") Unknown 500 Unknown
        "the connection or the leader was lost before the answer"
        "look, then decide; the library asks again for a session's own commands";
    code("unavailable") Failed 503 Unavailable
        "the service takes no requests now"
        "ask again later";
    code("not-your-session") Refused 403 PermissionDenied
        "the session key is wrong, or the connection is not attached to that session"
        "check the key; attach first on a stream";
    code("revision-too-old") Refused 410 OutOfRange
        "changes after that revision are no longer kept"
        "list, then watch after the list's revision";
    code("revision-ahead") Refused 409 OutOfRange
        "no such revision: of another store, or this one was set back"
        "list, then watch after the list's revision";
    code("too-many-watches") Failed 429 ResourceExhausted
        "the connection or the service is at its limit of watches"
        "end one, or raise the limit";
    code("too-much-unread") Failed 503 Unavailable
        "answers that wait for their readers leave no room for a page"
        "ask again later, and read what was asked for";
    code("no-such-member") Refused 404 NotFound
        "no node has that name"
        "`leasehold cluster status` lists them";
    code("member-taken") Refused 409 FailedPrecondition
        "a node already has that name, address or directory"
        "choose another, or remove that node first";
    code("was-removed") Refused 409 FailedPrecondition
        "that directory was a member before, and is not taken again"
        "start the node with an empty directory";
    code("too-many-members") Refused 429 ResourceExhausted
        "there are nine nodes, learners included"
        "remove one first";
    code("not-caught-up") Refused 409 FailedPrecondition
        "the learner is too far behind to vote"
        "ask again, or `promote --wait`";
    code("is-voter") Refused 409 FailedPrecondition
        "the node votes already"
        "nothing";
    code("is-learner") Refused 409 FailedPrecondition
        "a learner cannot lead"
        "promote it first";
    code("last-voter") Refused 409 FailedPrecondition
        "without this node nothing can be decided"
        "add another first";
    code("no-majority-left") Refused 409 FailedPrecondition
        "too few of the remaining nodes can be reached"
        "repair or remove the others first";
    code("change-under-way") Refused 409 Aborted
        "another change of the nodes is not finished"
        "ask again in a moment";
    code("handing-over") Refused 409 Aborted
        "the node to remove leads, and has begun to hand over"
        "ask again in a moment; `leasehold cluster remove` does";
    code("nobody-to-take-over") Refused 409 FailedPrecondition
        "no other voter is close enough"
        "see `leasehold cluster status`";
    code("node-unreachable") Failed 502 Unavailable
        "no node answers there, or the member to take over or vote does not answer its leader"
        "start it (a new one with `leasehold serve --join`), name another, or remove it";
    code("wrong-node") Refused 409 FailedPrecondition
        "the node at that address has another name"
        "check `--name` and the address";
    code("node-not-blank") Refused 409 FailedPrecondition
        "the node at that address belongs to another cluster"
        "start it with an empty directory and `--join`";
    code("address-differs") Refused 409 FailedPrecondition
        "the node that was asked is recorded at another address than it is reached at; a new node would look for it there"
        "`--advertise` the recorded address if it leads there, else `recover --listen-address`";
    code("bad-json") Refused 400 InvalidArgument
        "the body is not a JSON object"
        "the message says where";
    code("unknown-field") Refused 400 InvalidArgument
        "a field that this release does not know"
        "check its name; a newer client may send `?ignore-unknown=true`";
    code("bad-field") Refused 400 InvalidArgument
        "a field is missing, given twice, or has an invalid value"
        "the message names field, value and limit";
    code("body-too-large") Refused 413 ResourceExhausted
        "the body is above `http.max_body_bytes`"
        "values have at most 64 KiB";
    code("headers-too-large") Refused 431 ResourceExhausted
        "path and headers are above `http.max_header_bytes`"
        "send fewer";
    code("request-timeout") Failed 408 DeadlineExceeded
        "the request did not arrive whole within `http.request_timeout_ms`"
        "send it faster";
    code("no-such-path") Refused 404 Unimplemented
        "no call has that path"
        "`/openapi.json` lists all";
    code("wrong-method") Refused 405 Unimplemented
        "the path takes other methods"
        "the header `Allow` names them";
    code("wrong-content-type") Refused 415 InvalidArgument
        "the body is not declared as JSON"
        "send `Content-Type: application/json`";
    code("too-many-requests") Failed 429 ResourceExhausted
        "too many requests at once"
        "ask again later";
};
