# Groups records of one shown item each into served lists, and passes clicks through. jq -s reads the file into one array.
(map(select(.type == "impression")) | group_by(.request_id)[] | sort_by(.position)
  | .[0] + {type: "served", items: map(.item), experiments: {(.[0].experiment): .[0].arm}}
  | del(.item, .position, .experiment, .arm)),
(.[] | select(.type == "click"))
