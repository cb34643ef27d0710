//! The proxy in front of a plain HTTP store, over real sockets. Processes that are killed are tried with the command, in its package.

mod basics;
mod contract;
mod held_back;
mod odd;
mod order;
mod stage;
mod streams;
