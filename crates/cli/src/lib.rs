//! What the leasehold command is made of, as modules that tests and examples can use without going through
//! the command line. Promises no stable interface to anyone outside this package.

pub mod guardian;
pub mod supervise;
