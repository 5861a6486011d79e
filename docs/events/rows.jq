# Records of one shown item each, all of a file in one array (jq -s), as served lists; clicks as they are.
(map(select(.type == "impression")) | group_by(.request_id)[] | sort_by(.position)
  | .[0] + {type: "served", items: map(.item), experiments: {(.[0].experiment): .[0].arm}}
  | del(.item, .position, .experiment, .arm)),
(.[] | select(.type == "click"))
