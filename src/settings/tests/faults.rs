//! Tests of the messages for wrong settings.

use super::*;

#[test]
fn an_invalid_listen_address_is_refused_with_a_suggestion() {
    for (text, fault, remedy) in [
        ("", "", "write \"0.0.0.0:9464\""),
        ("9465", "", "write \"0.0.0.0:9465\""),
        ("10.0.0.1", "has no port", "write \"10.0.0.1:9464\""),
        (":99999", "an impossible port", "write \"0.0.0.0:9464\""),
        (
            "localhost:99999",
            "an impossible port",
            "write \"127.0.0.1:9464\"",
        ),
        ("127.0.0.1:-1", "an impossible port", "write \"127.0.0.1:9464\""),
        ("::1:9464", "is not an address", "\"[::1]:9464\""),
        (
            "gauges:9464",
            "is not an address",
            "\"127.0.0.1:9464\" for this machine only",
        ),
    ] {
        let variable = ("ABGAUGE_HTTP__LISTEN", text);
        check_refused("", &[variable], &["http.listen", fault, remedy]);
    }
}

#[test]
fn each_error_in_a_file_names_its_setting_line_and_fix() {
    let table: &[(&str, &[&str])] = &[
        (
            "[ingest]\nskip_records = [\"served/0\"]",
            &[
                "ingest.skip_records",
                ":2:17",
                "contains no offsets",
                "\"served/0/1234\"",
            ],
        ),
        (
            "[ingest]\nskip_records = [\"served/0/1\", \"other/0/1-2\"]",
            &["ingest.skip_records", ":2:31", "`other`", "`served` or `clicks`"],
        ),
        // Names.
        (
            "[kafka]\nborkers = \"a:1\"",
            &["kafka.borkers", "abgauge.toml:2:1", "did you mean `brokers`?"],
        ),
        (
            "[kafak]\nx = 1",
            &["kafak", "abgauge.toml:1:2", "did you mean `kafka`?"],
        ),
        (
            "[kafka]\nlateness = \"2m\"",
            &["kafka.lateness", "did you mean `lateness` under [join]?"],
        ),
        (
            "[kafka]\nsocket.timeout.ms = 5",
            &["kafka.socket", ":2:1", "under [kafka.properties]"],
        ),
        (
            "join = 5",
            &["join: is a table", "abgauge.toml:1:1", "write [join]"],
        ),
        (
            "[[kafka]]\nkey = \"user\"",
            &["kafka: is a table", "write [kafka]"],
        ),
        // Spans and sizes.
        (
            "[join]\nlateness = 120",
            &[
                "join.lateness",
                "abgauge.toml:2:12",
                "120 has no unit",
                "\"120s\"",
            ],
        ),
        (
            "[join]\nlateness = \"120\"",
            &["join.lateness", "120 has no unit", "\"120s\""],
        ),
        (
            "[join]\nlateness = \"2 min\"",
            &["join.lateness", ":2:12", "\"2 min\"", "write \"2m\""],
        ),
        (
            "[join]\nlateness = true",
            &[
                "join.lateness",
                "true is not a span of time",
                "write a span of time",
            ],
        ),
        ("[join]\nslot = \"0s\"", &["join.slot", "longer than nothing"]),
        (
            "[join]\nidle_after = \"0s\"",
            &["join.idle_after", "longer than nothing"],
        ),
        (
            "[http]\ntimeout = \"0s\"",
            &["http.timeout", "longer than nothing"],
        ),
        (
            "[limits]\nmax_state = 4",
            &["limits.max_state", ":2:13", "4 has no unit", "\"4GiB\""],
        ),
        (
            "[limits]\nmax_state = \"4Gi\"",
            &["limits.max_state", "\"4Gi\"", "write \"4GiB\""],
        ),
        (
            "[limits]\nmax_state = \"1kB\"",
            &["limits.max_state", "too small", "\"1MiB\""],
        ),
        // Settings that contradict each other.
        (
            "[join]\nlateness = \"59s\"",
            &[
                "join.lateness",
                ":2:12",
                "less than twice max_future (30s)",
                "\"1m\"",
                "at most \"29500ms\"",
            ],
        ),
        (
            "[join]\nmax_future = \"5m\"",
            &[
                "join.max_future",
                "less than twice max_future (5m)",
                "\"10m\"",
                "\"1m\"",
            ],
        ),
        (
            "[join]\nattribution = \"4s\"",
            &["join.attribution", "shorter than a slot (5s)", "\"5s\""],
        ),
        (
            "[metrics]\nwindows = [\"1h\", \"7m\"]",
            &[
                "metrics.windows",
                ":2:18",
                "\"7m\"",
                "whole slots of 5s",
                "\"5m\" or \"10m\"",
            ],
        ),
        (
            "[metrics]\nwindows = [\"1m\"]",
            &["metrics.windows", ":2:12", "write \"5m\", or a shorter slot"],
        ),
        (
            "[metrics]\nwindows = [\"90ms\"]\n[join]\nslot = \"1ms\"",
            &["metrics.windows", "\"60ms\" or \"120ms\""],
        ),
        // Lists.
        (
            "[metrics]\nk = [5, 1, 5]",
            &["metrics.k", ":2:5", "not ascending", "write k = [1, 5]"],
        ),
        (
            "[metrics]\nk = [0, 1]",
            &["metrics.k", ":2:6", "0 is out of range"],
        ),
        (
            "[metrics]\nk = [1, 100001]",
            &["metrics.k", ":2:9", "from 1 to 100000"],
        ),
        (
            "[metrics]\nk = 5",
            &["metrics.k", "5 is not a list", "write a list in brackets"],
        ),
        (
            "[metrics]\nk = [1, \"5\"]",
            &["metrics.k", ":2:9", "write a whole number"],
        ),
        ("[metrics]\nwindows = []", &["metrics.windows", "is empty"]),
        (
            "[metrics]\nwindows = [\"0s\"]",
            &["metrics.windows", "longer than nothing"],
        ),
        (
            "[metrics]\nwindows = [\"total\"]",
            &[
                "metrics.windows",
                "\"total\" does not fit",
                "write a span of time",
            ],
        ),
        (
            "[metrics]\nwindows = [\"1h\", \"60m\"]",
            &["metrics.windows", ":2:18", "the same window as \"1h\""],
        ),
        (
            "[export]\nmetrics = [\"ctr\", \"pecision\"]",
            &[
                "export.metrics",
                ":2:19",
                "\"pecision\"",
                "did you mean \"precision\"?",
            ],
        ),
        (
            "[export]\nmetrics = [\"auc\"]",
            &[
                "export.metrics",
                "\"hit_rate\", \"ctr\"",
                "\"surprisal\" or \"hit_ratio\"",
            ],
        ),
        (
            "[metrics]\nmetrics = [\"ctr\"]\n[export]\nmetrics = [\"mrr\"]",
            &["export.metrics", ":4:12", "is not measured", "under [metrics]"],
        ),
        (
            "[metrics]\nmetrics = [\"coverage\"]",
            &[
                "metrics.metrics",
                ":2:12",
                "needs the catalogue",
                "catalog = \"FILE\"",
            ],
        ),
        (
            "[metrics]\nprofile = \"seed-0\"\nmetrics = [\"ndcg\"]",
            &["metrics.metrics", ":3:12", "seed-0 does not define \"ndcg\""],
        ),
        (
            "[metrics]\nprofile = \"ranks\"",
            &["metrics.profile", ":2:11", "did you mean \"ranx\"?"],
        ),
        (
            "[metrics]\nprofile = [\"ranx\", \"ranx\"]",
            &["metrics.profile", "is there twice"],
        ),
        (
            "[metrics]\nprofile = 5",
            &["metrics.profile", "profile = [\"default\", \"ranx\"]"],
        ),
        ("[metrics]\nprofile = []", &["metrics.profile", "neither a name"]),
        (
            "[metrics]\nalpha = 1.5",
            &["metrics.alpha", ":2:9", "1.5 is out of range", "0 to 1"],
        ),
        (
            "[profile.mine]\nap_denominator = \"k\"",
            &["profile.mine", "has no base", "base = \"default\""],
        ),
        (
            "[profile.mine]\nbase = \"ranx\"\nap_denominatr = \"k\"",
            &[
                "profile.mine.ap_denominatr",
                ":3:17",
                "did you mean `ap_denominator`?",
            ],
        ),
        (
            "[profile.mine]\nbase = \"ranx\"\nap_denominator = \"L\"",
            &["profile.mine.ap_denominator", ":3:18", "\"min(k,L)\""],
        ),
        (
            "[profile.mine]\nbase = \"ranx\"\nmetrics = \"mrr\"",
            &["profile.mine.metrics", "is not a list of names"],
        ),
        (
            "[metrics]\nmetrics = []",
            &["metrics.metrics", ":2:11", "is empty", "[\"hit_rate\"]"],
        ),
        (
            "[profile.\"a,b\"]\nbase = \"ranx\"",
            &["profile.a,b", "no profile can have this name", "without a comma"],
        ),
        (
            "[profile.ranx]\nbase = \"default\"",
            &["profile.ranx", "built-in profile", "another name"],
        ),
        (
            "[export]\nmetrics = [\"hit_rate\", \"hit_ratio\"]",
            &["export.metrics", "\"hit_ratio\" is there twice"],
        ),
        (
            "[export]\nmetrics = [\"ctr\"]\nnumerators = [\"mrr\"]",
            &["export.numerators", ":3:15", "\"ctr\""],
        ),
        (
            "[export]\nmetrics = []\nnumerators = [\"mrr\"]",
            &["export.numerators", "leave it out"],
        ),
        (
            "[metrics]\ncatalog = \"a\"\n[export]\nmetrics = [\"mar\", \"coverage\"]\nnumerators = [\"coverage\"]",
            &["export.numerators", ":5:15", "\"mar\""],
        ),
        (
            "[export]\nk = [1, 7]",
            &["export.k", ":2:9", "7 is not computed", "[1, 5, 10]"],
        ),
        (
            "[export]\nwindows = [\"2h\"]",
            &["export.windows", ":2:12", "\"2h\"", "\"total\""],
        ),
        (
            "[export]\nviews = []",
            &["export.views", "nothing would be exported"],
        ),
        (
            "[export]\nviews = [\"setled\"]",
            &["export.views", "did you mean \"settled\"?", "\"setled\""],
        ),
        // Numbers.
        (
            "[join]\nmax_items = 0",
            &["join.max_items", ":2:13", "from 1 to 100000"],
        ),
        (
            "[join]\nmax_experiments = 0",
            &["join.max_experiments", ":2:19", "from 1 to 1000"],
        ),
        (
            "[join]\nmax_lists_per_click = 1001",
            &["join.max_lists_per_click", "from 1 to 1000"],
        ),
        (
            "[join]\nmax_items = 100001",
            &["join.max_items", "from 1 to 100000"],
        ),
        (
            "[join]\nmax_items = \"many\"",
            &[
                "join.max_items",
                "\"many\" is not a whole number",
                "write a whole number",
            ],
        ),
        (
            "[join]\nmax_off_list = -1",
            &["join.max_off_list", "from 0 to 1000"],
        ),
        (
            "[join]\nhash_seed = -1",
            &["join.hash_seed", "from 0 to 9223372036854775807"],
        ),
        (
            "[join]\nuser_key = \"0123456789abcde\"",
            &[
                "join.user_key: is too short to be a secret",
                "write 16 random characters or more",
            ],
        ),
        (
            "[join]\nmax_items = 99999999999999999999",
            &["join.max_items: 99999999999999999999 is not a whole number"],
        ),
        (
            "[join]\nslot = -5",
            &["join.slot: -5 is negative", "write a span of time"],
        ),
        (
            "[profile]\nx = 5",
            &["profile.x: 5 is not a table", "[profile.NAME]"],
        ),
        (
            "[metrics]\ncatalog = \"\"",
            &["metrics.catalog: is empty", "the path of a file"],
        ),
        ("[limits]\nmax_arms = 0", &["limits.max_arms", "from 1 to"]),
        ("[export]\nmax_series = 0", &["export.max_series", "from 1 to"]),
        (
            "[http]\nmax_connections = 0",
            &["http.max_connections", "from 1 to"],
        ),
        // Names of the outside world.
        (
            "[kafka]\nserved_topic = \"\"",
            &["kafka.served_topic", ":2:16", "is empty"],
        ),
        (
            "[kafka]\nclicks_topic = \"^clicks.*\"",
            &["kafka.clicks_topic", "is not the name of a topic"],
        ),
        (
            "[kafka]\ndead_letter_topic = \"served\"",
            &["kafka.dead_letter_topic", "another topic"],
        ),
        ("[kafka]\ngroup_id = \" \"", &["kafka.group_id", "is empty"]),
        (
            "[kafka]\nkey = \"requests\"",
            &["kafka.key", ":2:7", "did you mean \"request\"?"],
        ),
        (
            "[kafka]\nstart = \"now\"",
            &["kafka.start", "\"rebuild\" or \"earliest\""],
        ),
        (
            "[http]\nlisten = \"localhost:9464\"",
            &["http.listen", ":2:10", "write \"127.0.0.1:9464\""],
        ),
        (
            "[http]\nlisten = \":9464\"",
            &["http.listen", "write \"0.0.0.0:9464\""],
        ),
        (
            "[http]\nlisten = \"127.0.0.1:94640\"",
            &[
                "http.listen",
                "has an impossible port",
                "\"127.0.0.1:9464\"",
                "1 to 65535",
            ],
        ),
        (
            "[log]\nformat = \"xml\"",
            &["log.format", "\"auto\", \"text\" or \"json\""],
        ),
        (
            "[log]\nfilter = \"abgauge=loud\"",
            &["log.filter", ":2:10", "info,abgauge=debug"],
        ),
        (
            "[log]\nfilter = \"inof\"",
            &["log.filter", "`inof` is not a level", "did you mean info?"],
        ),
        (
            "[log]\nfilter = \"info,librdkafka\"",
            &["`librdkafka` is not a level", "info,librdkafka=debug"],
        ),
        ("[log]\nfilter = \"\"", &["log.filter", "is empty"]),
        // Experiments.
        (
            "[experiments.a]\nstart = \"2026-01-31\"",
            &["experiments.a.start", ":2:9", "2026-01-31T09:00:00Z"],
        ),
        (
            "[experiments.a]\nstart = 2026-01-31T09:00:00",
            &["experiments.a.start", ":2:9", "offset"],
        ),
        (
            "[experiments.a]\nstrat = 5",
            &["experiments.a.strat", ":2:1", "did you mean `start`?"],
        ),
        (
            "[experiments]\na = 5",
            &["experiments.a: is a table", ":2:5", "[experiments.NAME]"],
        ),
        (
            "[experiments.a]\ncontrol = \"__other__\"",
            &["experiments.a.control", ":2:11", "no arm can have this name"],
        ),
        (
            "[experiments.__other__]\ncontrol = \"a\"",
            &["experiments.__other__", "this name"],
        ),
        ("[experiments.__other__]", &["experiments.__other__", "this name"]),
        (
            "[experiments.__other__]\nstart = \"2026-01-31T09:00:00Z\"",
            &["experiments.__other__", "this name"],
        ),
        // Properties.
        (
            "[kafka.properties]\n\"group.id\" = \"x\"",
            &["kafka.properties.group.id", ":2:14", "`group_id` under [kafka]"],
        ),
        (
            "[kafka.properties]\nauto.offset.reset = \"x\"",
            &["auto.offset.reset", ":2:21", "`start` under [kafka]"],
        ),
        (
            "[kafka.properties]\nenable.auto.commit = true",
            &["enable.auto.commit", "leave it out"],
        ),
        (
            "[kafka.properties]\n\"a..b\" = 1",
            &["kafka.properties.…", "not the name of a property"],
        ),
        (
            "[kafka.properties]\nlinger.ms = 0.5",
            &[
                "kafka.properties.linger.ms",
                ":2:13",
                "a number with a fraction is not the value of a property",
                "text in quotes",
            ],
        ),
        // State topic.
        (
            "[state]\ntopic = \"a b\"",
            &["state.topic", ":2:9", "not the name of a topic", "1 to 249"],
        ),
        (
            "[state]\ntopic = \"clicks\"",
            &[
                "state.topic",
                ":2:9",
                "is used for something else",
                "only abgauge writes",
            ],
        ),
        (
            "[state]\ninterval = \"10ms\"",
            &["state.interval", ":2:12", "is too often", "1s"],
        ),
        (
            "[state]\nmax_bytes_per_second = \"1KiB\"",
            &["state.max_bytes_per_second", "too little", "4KiB"],
        ),
        (
            "[global]\nenabled = true",
            &["global.enabled", ":2:11", "no state is stored", "set state.topic"],
        ),
        // Webhook.
        (
            "[webhook]\nurl = \"hooks.example/x\"",
            &["webhook.url", ":2:7", "starts with neither", "such as \"https://"],
        ),
        (
            "[webhook]\nsecret_file = \"s\"",
            &[
                "webhook.secret_file",
                ":2:15",
                "without an address",
                "webhook.url",
            ],
        ),
        (
            "[webhook]\nurl = \"http://a\"\nca_file = \"ca\"",
            &["webhook.ca_file", ":3:11", "no effect on plain HTTP", "https://"],
        ),
        (
            "[webhook]\nurl = \"http://a\"\nheader = \"X Token\"",
            &["webhook.header", ":3:10", "not the name of a header", "X-Token"],
        ),
        (
            "[webhook]\nurl = \"http://a\"\nheader = \"Content-Type\"",
            &[
                "webhook.header",
                "content-type is a header that abgauge sets itself",
            ],
        ),
        (
            "[webhook]\ntimeout = \"0s\"",
            &["webhook.timeout", "longer than nothing"],
        ),
        // Links.
        (
            "[http]\npublic_url = \"abgauge.example\"",
            &[
                "http.public_url",
                ":2:14",
                "neither https://",
                "such as \"https://abgauge.example",
            ],
        ),
        (
            "[http]\npublic_url = \"https://abgauge.example/?theme=dark\"",
            &["http.public_url", "has a query"],
        ),
        // Access.
        (
            "[http]\ntls_key = \"key.pem\"",
            &[
                "http.tls_key",
                ":2:11",
                "without a certificate",
                "http.tls_certificate",
            ],
        ),
        (
            "[http]\nhosts = [\"https://abgauge.example:443/\"]",
            &[
                "http.hosts",
                ":2:10",
                "more than a host",
                "write \"abgauge.example\"",
            ],
        ),
        (
            "[http]\nhosts = [\"::1\"]",
            &["http.hosts", "without brackets", "write \"[::1]\""],
        ),
        (
            "[http]\nhosts = [\"a\", \"A.\"]",
            &["http.hosts", "is there twice", "leave one of them out"],
        ),
        (
            "[http]\nframe_ancestors = [\"https://wiki.example/page\"]",
            &[
                "http.frame_ancestors",
                ":2:20",
                "is not an origin",
                "write \"https://wiki.example\"",
            ],
        ),
        (
            "[http]\nframe_ancestors = [\"*\"]",
            &["http.frame_ancestors", "https://", "\"https://wiki.example\""],
        ),
        (
            "[http]\nframe_ancestors = [\"https://a; script-src *\"]",
            &["http.frame_ancestors", "is not an origin"],
        ),
        (
            "[http]\nframe_ancestors = [\"https://a\", \"https://A\"]",
            &["http.frame_ancestors", "is there twice", "leave one of them out"],
        ),
        (
            "[http]\nbearer_tokens = [\"00\"]",
            &["http.bearer_tokens", ":2:17", "entry 1", "abgauge hash token"],
        ),
        (
            "[http]\nbasic_passwords = 5",
            &[
                "http.basic_passwords",
                "a number is not a list of hashes",
                "a list of hashes in quotes",
            ],
        ),
        (
            "[http]\nbasic_passwords = [\"scraper:$2y$05$abcdefghijklmnopqrstuuu7NtNcXHnHdcVlnhAqfbVRe3oTRNvjq\"]",
            &[
                "http.basic_passwords",
                "cost outside 10 to 14",
                "abgauge hash password",
            ],
        ),
        (
            "[kafka.property_files]\nsasl.password = \"no/such/file\"",
            &[
                "kafka.property_files.sasl.password",
                ":2:17",
                "No such file",
                "write the path",
            ],
        ),
    ];
    for (text, fragments) in table {
        check_refused(text, &[], fragments);
    }
}

#[test]
fn an_error_in_a_variable_names_the_variable() {
    let table: &[(&str, &str, &[&str])] = &[
        (
            "ABGAUGE_JOIN__LATENESS",
            "120",
            &["join.lateness (from ABGAUGE_JOIN__LATENESS)", "\"120s\""],
        ),
        (
            "ABGAUGE_JOIN__MAX_ITEMS",
            "many",
            &["ABGAUGE_JOIN__MAX_ITEMS", "a whole number"],
        ),
        (
            "ABGAUGE_METRICS__K",
            "1,x",
            &[
                "metrics.k (from ABGAUGE_METRICS__K)",
                "\"x\" is not a whole number",
                "by commas",
            ],
        ),
        ("ABGAUGE_METRICS__K", "1,,2", &["\"\" is not a whole number"]),
        ("ABGAUGE_METRICS__K", "[1,2", &["\"[1\" is not a whole number"]),
        (
            "ABGAUGE_METRICS__WINDOWS",
            "5m,99999d",
            &["\"99999d\" is too long", "at most ten years"],
        ),
        (
            "ABGAUGE_METRICS__WINDOWS",
            "5m,1",
            &["1 has no unit", "by commas"],
        ),
        ("ABGAUGE_METRICS__METRICS", ",", &["\"\" is not known here"]),
        (
            "ABGAUGE_LIMITS__MAX_INVALID_SHARE",
            "5%",
            &["is not a number", "such as 0.5"],
        ),
        (
            "ABGAUGE_HTTP__OPEN_PROBES",
            "yes",
            &["\"yes\" is not true or false", "write true or false"],
        ),
        (
            "ABGAUGE_JOIN__SLOT",
            "7s",
            &[
                "join.slot (from",
                "5m, 1h, 24h (metrics.windows)",
                "write slot = \"5s\"",
            ],
        ),
        (
            "ABGAUGE_EVALUATE_KK",
            "5",
            &["there is no such flag", "ABGAUGE_EVALUATE_K,"],
        ),
        ("ABGAUGE_DEMO_RAET", "5", &["did you mean ABGAUGE_DEMO_RATE?"]),
        ("ABGAUGE_JOIN__MAX_ITEMS", "", &["\"\" is not a whole number"]),
        (
            "ABGAUGE_METRICS__K",
            "5,1",
            &["metrics.k (from ABGAUGE_METRICS__K)", "[1, 5]"],
        ),
        (
            "ABGAUGE_KAFKA__BROKRES",
            "a:1",
            &["ABGAUGE_KAFKA__BROKRES", "did you mean ABGAUGE_KAFKA__BROKERS?"],
        ),
        (
            "ABGAUGE_Kafka__Brokers",
            "a:1",
            &["ABGAUGE_Kafka__Brokers", "did you mean ABGAUGE_KAFKA__BROKERS?"],
        ),
        (
            "ABGAUGE_KAFKA__SASL_PASSWORD",
            "x",
            &["ABGAUGE_KAFKA__SASL_PASSWORD", "ABGAUGE_KAFKA__PROPERTIES__NAME"],
        ),
        (
            "ABGAUGE_KAFKA__PROPERTIES",
            "x",
            &["did you mean ABGAUGE_KAFKA__PROPERTIES__NAME?"],
        ),
        (
            "ABGAUGE_EXPERIMENTS__A__START",
            "x",
            &["ABGAUGE_EXPERIMENTS__A__START", "[experiments.NAME]"],
        ),
        (
            "ABGAUGE_KAFKA__PROPERTIES__GROUP_ID",
            "x",
            &["ABGAUGE_KAFKA__PROPERTIES__GROUP_ID", "`group_id`"],
        ),
        (
            "ABGAUGE_KAFKA__PROPERTY_FILES__SASL_PASSWORD",
            "no",
            &["PROPERTY_FILES__SASL_PASSWORD", "No such file"],
        ),
    ];
    for (name, value, fragments) in table {
        check_refused("", &[(name, value)], fragments);
    }
    for brokers in [
        "",
        ":9092",
        "a:1,,b:2",
        "a:0",
        "a:port",
        "a:99999",
        "a b:1",
        "kafka://a:1",
        "ssl://:1",
    ] {
        check_refused(
            "",
            &[("ABGAUGE_KAFKA__BROKERS", brokers)],
            &["kafka.brokers", "HOST:PORT"],
        );
    }
    for (brokers, reported) in [
        ("http://a:8082", "http://a:8082 is an HTTP address"),
        ("b:9092,HTTPS://a", "https://a is an HTTP address"),
    ] {
        let remedy = "brokers speak Kafka's own protocol, mostly at port 9092: write HOST:PORT of a listener";
        check_refused(
            "",
            &[("ABGAUGE_KAFKA__BROKERS", brokers)],
            &["kafka.brokers", reported, remedy],
        );
    }
    for (brokers, reported) in [
        (
            "h:9092;h:3",
            ["has a semicolon between brokers", "several separated by commas"],
        ),
        (
            "::1",
            ["\"::1\" has more than one colon", "such as \"[::1]:9092\""],
        ),
        ("fe80::1:9092", ["more than one colon", "address in brackets"]),
        (
            "user:hunter2@h:9092",
            [
                "names a user before an @",
                "kafka.property_files.\"sasl.password\"",
            ],
        ),
        (
            "http://user:hunter2@h:8082",
            ["names a user before an @", "HOST:PORT"],
        ),
    ] {
        let reported = ["kafka.brokers", reported[0], reported[1]];
        check_refused("", &[("ABGAUGE_KAFKA__BROKERS", brokers)], &reported);
        let text = format!("[kafka]\nbrokers = \"{brokers}\"\n");
        let errors =
            crate::settings::load_text("abgauge.toml", &text, std::iter::empty()).expect_err(brokers);
        let shown: Vec<String> = errors
            .each()
            .map(|reported| format!("{:?}", miette::Report::new(reported)))
            .collect();
        assert!(
            shown[0].contains(reported[1]) && !shown.concat().contains("hunter2"),
            "{shown:?}"
        );
    }
    let bracketed = (
        "ABGAUGE_KAFKA__BROKERS".to_owned(),
        "[::1]:9092,[fe80::1]".to_owned(),
    );
    assert!(crate::settings::load(None, [bracketed].into_iter()).is_ok());
    // Listeners as librdkafka accepts them.
    let listeners = (
        "ABGAUGE_KAFKA__BROKERS".to_owned(),
        "PLAINTEXT://a:9092,sasl_ssl://b".to_owned(),
    );
    assert!(crate::settings::load(None, [listeners].into_iter()).is_ok());
}

#[test]
fn all_errors_are_reported_at_once_in_file_order() {
    let text = "[log]\nformat = \"xml\"\n[join]\nslot = 5\nlatenes = \"1m\"\n[metrics]\nk = [2, 1]\nwindows = [\"7m\"]\n";
    let errors = refused(text, &[("ABGAUGE_HTTP__LISTEN", "here")]);
    let keys: Vec<&str> = errors.errors().iter().map(|error| error.key.as_str()).collect();
    // The window is not compared with a slot that is itself wrong.
    assert_eq!(
        keys,
        [
            "log.format",
            "join.slot",
            "join.latenes",
            "metrics.k",
            "http.listen"
        ]
    );
    assert_eq!(
        errors.to_string(),
        "the configuration (abgauge.toml) has 5 errors"
    );
}

#[test]
fn every_syntax_error_is_reported_with_its_line() {
    let errors = refused("[kafka]\nkey = \n[join]\nslot = = 5\n", &[]);
    let rendered = render(&errors);
    assert!(
        rendered.contains("abgauge.toml:2:") && rendered.contains("abgauge.toml:4:"),
        "{rendered}"
    );
}
