# Converts rows of GA4's export to BigQuery, as JSON, to events of abgauge's own shape, and skips other rows.
#
#   jq --compact-output --from-file ga4_export.jq < rows.jsonl > events.jsonl

def param(name): first(.event_params[] | select(.key == name) | .value | .string_value // .int_value);

if .event_name == "view_item_list" then
  {type: "served", request_id: param("recommendation_id"), experiments: {(param("experiment")): param("arm")}, items: [.items[].item_id]}
elif .event_name == "select_item" then
  {type: "click", request_id: param("recommendation_id"), item: .items[0].item_id}
else
  empty
end + {user_id: .user_pseudo_id, ts: (.event_timestamp | tonumber / 1000 | floor)}
