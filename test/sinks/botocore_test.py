"""What sinks send to SQS, SNS and EventBridge, compared with what botocore sends for the same.

botocore_test.py SEND_EVENTS

A server on loopback keeps every request. Its parameters are read back, checked against botocore's
model of the service, serialized by botocore, and have to come out the same: body, content type and
target. The signature has to be the one that botocore gives the request.
"""
import datetime
import http.server
import json
import os
import re
import subprocess
import sys
import threading
import urllib.parse

try:
    import botocore.auth
    import botocore.awsrequest
    import botocore.credentials
    import botocore.session
    import botocore.validate
except ImportError:
    sys.exit(77)

REGION = 'eu-central-1'
KEYS = ('AKIDEXAMPLE', 'secret+key/of/the/test', 'session+token==')
session = botocore.session.get_session()


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'
    requests = []

    def do_POST(self):
        body = self.rfile.read(int(self.headers['content-length']))
        Handler.requests.append((self.path, list(self.headers.items()), body))
        answer = self.answer(self.headers.get('x-amz-target', ''), body.decode()).encode()
        self.send_response(200)
        self.send_header('Content-Length', str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    @staticmethod
    def answer(target, body):
        if target == 'AmazonSQS.SendMessageBatch':
            ids = [entry['Id'] for entry in json.loads(body)['Entries']]
            return json.dumps({'Successful': [
                {'Id': i, 'MessageId': 'm', 'MD5OfMessageBody': 'x'} for i in ids]})
        if target == 'AWSEvents.PutEvents':
            entries = json.loads(body)['Entries']
            return json.dumps({'FailedEntryCount': 0, 'Entries': [{'EventId': 'e'} for _ in entries]})
        ids = [value for name, value in urllib.parse.parse_qsl(body) if name.endswith('.Id')]
        return ('<PublishBatchResponse><PublishBatchResult><Successful>' + ''.join(
            f'<member><Id>{i}</Id><MessageId>m</MessageId></member>' for i in ids) +
            '</Successful><Failed/></PublishBatchResult></PublishBatchResponse>')

    def log_message(self, *_):
        pass


def of_form(body):
    """The parameters of PublishBatch."""
    params, entries = {}, {}
    for name, value in urllib.parse.parse_qsl(body, keep_blank_values=True, strict_parsing=True):
        match = re.fullmatch(r'PublishBatchRequestEntries\.member\.(\d+)\.(.*)', name)
        if not match:
            params[name] = value
            continue
        entry = entries.setdefault(int(match[1]), {'attributes': {}})
        attribute = re.fullmatch(r'MessageAttributes\.entry\.(\d+)\.(.*)', match[2])
        if attribute:
            entry['attributes'].setdefault(int(attribute[1]), {})[attribute[2]] = value
        else:
            entry[match[2]] = value
    assert params.pop('Action') == 'PublishBatch' and params.pop('Version') == '2010-03-31', params
    assert sorted(entries) == list(range(1, len(entries) + 1)), entries
    for entry in entries.values():
        attributes = entry.pop('attributes')
        assert sorted(attributes) == list(range(1, len(attributes) + 1)), attributes
        entry['MessageAttributes'] = {
            a['Name']: {'DataType': a['Value.DataType'], 'StringValue': a['Value.StringValue']}
            for a in attributes.values()}
    params['PublishBatchRequestEntries'] = [entries[i] for i in sorted(entries)]
    return params


def parameters(service, body):
    if service == 'sns':
        return of_form(body)
    params = json.loads(body)
    for entry in params['Entries']:
        if 'Time' in entry:
            entry['Time'] = datetime.datetime.fromtimestamp(entry['Time'], datetime.timezone.utc)
    return params


def same_body(service, protocol, ours, theirs):
    theirs = theirs.decode() if isinstance(theirs, bytes) else theirs
    if service == 'sns':
        if isinstance(theirs, dict):
            theirs = urllib.parse.urlencode(theirs)
        return sorted(urllib.parse.parse_qsl(ours)) == sorted(urllib.parse.parse_qsl(theirs))
    if protocol != 'json':
        return True  # an older botocore speaks another protocol to SQS
    ours, theirs = json.loads(ours), json.loads(theirs)
    for entry in ours['Entries']:
        if 'Time' in entry:  # older ones cut fractions of a second off
            entry['Time'] = int(entry['Time'])
    for entry in theirs['Entries']:
        if 'Time' in entry:
            entry['Time'] = int(entry['Time'])
    return ours == theirs


def check_shape(service, operation, request):
    _, headers, body = request
    fields = {name.lower(): value for name, value in headers}
    client = session.create_client(service, region_name=REGION, aws_access_key_id='a',
                                   aws_secret_access_key='b')
    model = client.meta.service_model.operation_model(operation)
    protocol = client.meta.service_model.metadata['protocol']
    params = parameters(service, body.decode())
    report = botocore.validate.ParamValidator().validate(params, model.input_shape)
    assert not report.has_errors(), report.generate_report()
    made = client._serializer.serialize_to_request(params, model)
    assert same_body(service, protocol, body.decode(), made['body']), (body, made['body'])
    if not (service == 'sqs' and protocol != 'json'):
        assert fields['content-type'] == made['headers']['Content-Type'], (fields, made['headers'])
        assert fields.get('x-amz-target') == made['headers'].get('X-Amz-Target'), fields
    return params


def check_signature(service, request, origin):
    path, headers, body = request
    fields = {name.lower(): value for name, value in headers}
    match = re.fullmatch(r'AWS4-HMAC-SHA256 Credential=([^/]+)/(\d{8})/([^/]+)/([^/]+)/aws4_request, '
                         r'SignedHeaders=([^,]+), Signature=([0-9a-f]{64})', fields['authorization'])
    assert match, fields['authorization']
    assert (match[1], match[3], match[4]) == (KEYS[0], REGION, service), match.groups()
    signer = botocore.auth.SigV4Auth(botocore.credentials.Credentials(*KEYS), service, REGION)
    again = botocore.awsrequest.AWSRequest('POST', origin + path, headers={
        name: fields[name] for name in match[5].split(';')}, data=body)
    again.context['timestamp'] = fields['x-amz-date']
    string = signer.string_to_sign(again, signer.canonical_request(again))
    assert signer.signature(string, again) == match[6], string
    assert fields['x-amz-security-token'] == KEYS[2]


def run(program, url, count):
    variables = {name: value for name, value in os.environ.items() if not name.startswith('AWS_')}
    variables.update(AWS_ACCESS_KEY_ID=KEYS[0], AWS_SECRET_ACCESS_KEY=KEYS[1],
                     AWS_SESSION_TOKEN=KEYS[2], AWS_CONFIG_FILE='/dev/null',
                     AWS_SHARED_CREDENTIALS_FILE='/dev/null', AWS_REGION=REGION)
    Handler.requests.clear()
    done = subprocess.run([program, url, str(count)], env=variables, capture_output=True, text=True,
                          timeout=60)
    assert done.returncode == 0 and done.stdout == 'HF_OK 0 \n' * count, done


def main():
    server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    origin = f'http://127.0.0.1:{server.server_port}'
    topic = 'sns:arn:aws:sns:eu-central-1:123456789012:orders'
    cases = [
        ('sqs', 'SendMessageBatch', f'sqs:{origin}/123456789012/orders'),
        ('sqs', 'SendMessageBatch', f'sqs:{origin}/123456789012/orders.fifo?form=payload'),
        ('sqs', 'SendMessageBatch',
         f'sqs:https://sqs.eu-central-1.amazonaws.com/123456789012/orders?endpoint={origin}'),
        ('sns', 'PublishBatch', f'{topic}?endpoint={origin}&subject={{type}}'),
        ('sns', 'PublishBatch', f'{topic}.fifo?endpoint={origin}&form=payload'),
        ('events', 'PutEvents', f'eventbridge:default?endpoint={origin}'),
        ('events', 'PutEvents',
         'eventbridge:arn:aws:events:eu-central-1:123456789012:event-bus/orders'
         f'?endpoint={origin}&detail=payload&source=shop.{{tenant}}'),
    ]
    for service, operation, url in cases:
        for count in (1, 10):
            run(sys.argv[1], url, count)
            assert len(Handler.requests) == 1, Handler.requests
            check_signature(service, Handler.requests[0], origin)
            params = check_shape(service, operation, Handler.requests[0])
            entries = params.get('Entries') or params['PublishBatchRequestEntries']
            assert len(entries) == count
            if '.fifo' in url:
                assert entries[-1]['MessageGroupId'] and \
                    entries[-1]['MessageDeduplicationId'] == f'id-{count - 1}', entries
    server.shutdown()
    print(f'{len(cases) * 2} requests are as botocore {botocore.__version__} has them')


main()
