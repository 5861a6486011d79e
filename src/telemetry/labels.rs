//! Labels with a fixed set of values: a row gives the variant and the text of each value.

macro_rules! labels {
    ($(
        $(#[$doc:meta])*
        pub enum $Label:ident {
            $($(#[$about:meta])* $value:ident = $text:literal,)+
        }
    )+) => {
        $(
            $(#[$doc])*
            #[derive(Debug, Clone, Copy, PartialEq, Eq)]
            pub enum $Label {
                $($(#[$about])* $value,)+
            }

            impl $Label {
                pub const ALL: [$Label; [$($text),+].len()] = [$($Label::$value),+];

                /// Returns the value of the label.
                pub fn name(self) -> &'static str {
                    match self {
                        $($Label::$value => $text,)+
                    }
                }
            }
        )+
    };
}

labels! {
    /// Kind of record that should be rare, as in the label `of`.
    pub enum Excess {
        /// Unreadable records.
        Invalid = "invalid",
        /// Late records and records of a settled slot.
        Late = "late",
        Future = "future",
        Duplicate = "duplicate",
        /// Clicks without a list.
        Unmatched = "unmatched",
    }

    /// Fate of an unreadable record on its way to the dead-letter topic, as in the label `result`.
    pub enum DeadLetter {
        /// Acknowledged by the broker.
        Delivered = "delivered",
        /// Refused by the broker, or timed out.
        Failed = "failed",
        /// Discarded because too many were in flight already.
        Dropped = "dropped",
    }

    /// Result of an attempt to call the webhook, as in the label `result`.
    pub enum WebhookResult {
        /// Answered with success.
        Sent = "sent",
        /// Failed, to be tried again.
        Failed = "failed",
    }

    /// Reason why the HTTP server refused a request or a connection, as in the label `reason`.
    pub enum HttpRefusal {
        /// Neither a token nor a password. A browser's first request has none.
        NoCredentials = "no_credentials",
        WrongCredentials = "wrong_credentials",
        TlsHandshake = "tls_handshake",
        /// Bytes that are not HTTP.
        Malformed = "malformed",
        /// Client that did not finish its request or read its answer in time.
        TooSlow = "too_slow",
        /// Connection that gave up its slot to another one before it had sent a complete request.
        NoSlot = "no_slot",
        /// Client that did not read its answer while another connection needed the slot or the memory.
        Stalled = "stalled",
        /// Password that was not checked because too many arrived.
        TooManyPasswords = "too_many_passwords",
        /// Request for a host that is not served.
        ForeignHost = "foreign_host",
    }
}
