# Replaces the id of a shown item in clicks with the ids of its list and of its item. jq -s reads the file into one array.
(map(select(.type == "served") | .auction_id as $list
  | .items[] | {key: .impression_id, value: {request_id: $list, item: .sku}}) | from_entries) as $shown
| .[]
| if .type == "served" then . + {request_id: .auction_id, items: [.items[].sku]}
  elif .type == "click" then . + ($shown[.impression_id] // {request_id: "none", item: "none"})
  else . end
