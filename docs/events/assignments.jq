# Adds to each served list the arms that its user was last assigned before it. jq -s reads the file into one array.
foreach sort_by(.ts)[] as $event ({};
  if $event.type == "assignment" then .[$event.user_id][$event.experiment] = $event.arm else . end;
  if $event.type == "assignment" then empty
  elif $event.type == "served" then $event + {experiments: (.[$event.user_id] // {})}
  else $event end)
