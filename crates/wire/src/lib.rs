//! The session stream: messages, their framing, and their conversion to the core's types.
