#!/bin/sh
# confluent-kafka's serializer for Protobuf registers a descriptor in base64, not the text of the .proto file. A registry that does
# not turn it into text, such as Apicurio 2, gives consumers base64 where they expect a .proto file.
# Its serializer with ids in headers writes a GUID, and so needs a registry that answers with one: Apicurio 2 does not.
# Needs Python 3 with venv, and PyPI. Fails if a version does otherwise.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
python3 -m venv "$dir/venv"
"$dir/venv/bin/pip" install --quiet "confluent-kafka[avro,protobuf]==2.16.1"
cd "$dir"
cat > write.py <<'PYTHON'
import base64
import json
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

from confluent_kafka.schema_registry import SchemaRegistryClient, header_schema_id_serializer
from confluent_kafka.schema_registry.protobuf import ProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from google.protobuf import descriptor_pb2
from google.protobuf.timestamp_pb2 import Timestamp


class Registry(BaseHTTPRequestHandler):
    registered = []
    answer = {"id": 7}

    def do_POST(self):
        self.registered.append(json.loads(self.rfile.read(int(self.headers["content-length"]))))
        self.reply(200, self.answer)

    def do_GET(self):
        self.reply(404, {"error_code": 40401, "message": "not found"})

    def reply(self, status, body):
        body = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


server = HTTPServer(("127.0.0.1", 0), Registry)
threading.Thread(target=server.serve_forever, daemon=True).start()


def write(conf):
    client = SchemaRegistryClient({"url": f"http://127.0.0.1:{server.server_port}"})
    context = SerializationContext("clicks", MessageField.VALUE, headers=[])
    conf = {"use.deprecated.format": False, **conf}
    value = ProtobufSerializer(Timestamp, client, conf)(Timestamp(seconds=5), context)
    return value.hex(), [(name, value.hex()) for name, value in context.headers]


print("record:", *write({}))
schema = base64.b64decode(Registry.registered[0]["schema"])
print("registered:", descriptor_pb2.FileDescriptorProto.FromString(schema).name)
in_header = {"schema.id.serializer": header_schema_id_serializer}
try:
    print("header:", *write(in_header))
except Exception as error:
    print("header, without a GUID:", error)
Registry.answer = {"id": 7, "guid": "61626761-7567-6521-8000-000000000007"}
print("header, with a GUID:", *write(in_header))
PYTHON
cat > expected <<'TEXT'
record: 0000000007000805 []
registered: google/protobuf/timestamp.proto
header, without a GUID: Schema GUID is not set
header, with a GUID: 0805 [('__value_schema_id', '016162676175676521800000000000000700')]
TEXT
echo "confluent-kafka $("$dir/venv/bin/python" -c 'import confluent_kafka; print(confluent_kafka.__version__)')"
"$dir/venv/bin/python" write.py | tee actual
diff expected actual
