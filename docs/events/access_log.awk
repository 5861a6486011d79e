# Converts lines of an access log in the combined format to events of abgauge's own shape.
#
#   awk -f access_log.awk access.log > events.jsonl
#
# Reads two addresses and skips all others:
#
#   /b/list?rid=REQUEST&uid=USER&exp=EXPERIMENT:ARM,…&items=ITEM,…
#   /b/click?rid=REQUEST&uid=USER&item=ITEM
#
# Values may contain letters, digits, and - . _ ~, which need no escape in an address or in JSON. Lines with any other character
# are skipped too, and their number is printed on standard error.

# Field 4 is "[20/Nov/2025:00:00:00", field 5 "+0000]", field 7 the address.
$7 ~ /^\/b\/(list|click)\?/ {
    is_list = $7 ~ /^\/b\/list/
    split("", value)
    n = split(substr($7, index($7, "?") + 1), pairs, "&")
    for (i = 1; i <= n; i++) {
        at = index(pairs[i], "=")
        value[substr(pairs[i], 1, at - 1)] = substr(pairs[i], at + 1)
    }
    if (!are_plain(value["rid"] value["uid"] value["exp"] value["items"] value["item"])) {
        left_out++
        next
    }
    event = "{\"type\":\"" (is_list ? "served" : "click") "\",\"request_id\":\"" value["rid"] "\",\"ts\":\"" time($4, $5) "\""
    if (value["uid"] != "") event = event ",\"user_id\":\"" value["uid"] "\""
    if (is_list)
        event = event ",\"experiments\":{" joined(value["exp"], ":") "},\"items\":[" joined(value["items"]) "]"
    else
        event = event ",\"item\":\"" value["item"] "\""
    print event "}"
}

END {
    if (left_out) print "access_log.awk: " left_out " lines with a value that is not plain" > "/dev/stderr"
}

function are_plain(text) { return text ~ /^[A-Za-z0-9._~:,-]*$/ }

# "[20/Nov/2025:00:00:00", "+0100]": 2025-11-20T00:00:00+01:00.
function time(local, zone,    month) {
    month = index("JanFebMarAprMayJunJulAugSepOctNovDec", substr(local, 5, 3)) / 3 + 2 / 3
    return sprintf("%s-%02d-%sT%s%s:%s", substr(local, 9, 4), month, substr(local, 2, 2), substr(local, 14, 8), substr(zone, 1, 3), substr(zone, 4, 2))
}

# "a,b" in quotes: "a","b"; with a colon "e:a" becomes "e":"a".
function joined(list, colon) {
    if (list == "") return ""
    gsub(/,/, "\",\"", list)
    if (colon) gsub(/:/, "\":\"", list)
    return "\"" list "\""
}
