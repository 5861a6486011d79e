# Gives each served list an id, and each click the id of the latest list of its user that shows its item. jq -s reads the file into one
# array.
foreach (to_entries | sort_by(.value.ts)[]) as {key: $n, value: $event} ({};
  if $event.type == "served" then
    .[$event.user_id] = ([$event + {request_id: "list-\($n)"}] + (.[$event.user_id] // []))[:50]
  else . end;
  if $event.type == "served" then .[$event.user_id][0]
  else $event + {request_id: (first(.[$event.user_id][]? | select(.items | index($event.item)) | .request_id) // "none")} end)
