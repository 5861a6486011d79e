# Turns events into the shape that abgauge reads. Keep the lines that your events need, and replace the names of fields.

# Data of CloudEvents in base64.
(if .data_base64 then .data_base64 | @base64d | fromjson else . end)
# A type, if only the fields tell lists from clicks.
| (if has("type") then . else .type = (if has("items") then "served" else "click" end) end)
# Items as JSON text or comma-separated text.
| (if .items | type == "string" then .items = (.items | fromjson? // split(",")) else . end)
# Attributes as JSON text.
| (if .properties | type == "string" then . + (.properties | fromjson) else . end)
# A mix of seconds and milliseconds.
| (if (.ts | type) == "number" and .ts < 1e11 then .ts = (.ts * 1000 | floor) else . end)
# Times in another format, here 11/20/2025 12:00:09 AM in UTC.
| (if (.ts | type) == "string" and (.ts | test("/")) then .ts |= (strptime("%m/%d/%Y %I:%M:%S %p") | mktime * 1000) else . end)
# Several experiments in fields of their own, without those that the list is not in.
| ([.experiment1, .experiment2 | select(. and .inExperiment != false) | {(.key): .variation}] | add) as $experiments
| (if $experiments then .experiments = $experiments else . end)
