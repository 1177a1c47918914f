// Confluent's client for Node, driven line by line: the first line of the input says where the
// registry is, every other one asks for something; each of them is answered with one line of JSON.
"use strict";

const fs = require("node:fs");
const https = require("node:https");
const readline = require("node:readline");
const {
  AvroDeserializer,
  AvroSerializer,
  HeaderSchemaIdSerializer,
  RestError,
  SchemaRegistryClient,
  SerdeType,
} = require("@confluentinc/schemaregistry");

/** Every request of a test, and what the client does for it. */
const CALLS = {
  register: async (client, { subject, ...schema }) =>
    known(await client.registerFullResponse(subject, schema, false)),
  lookup: async (client, { subject, ...schema }) =>
    known(await client.getIdFullResponse(subject, schema, false)),
  schema_by_id: async (client, { subject, id }) => text(await client.getBySubjectAndId(subject, id)),
  schema_by_guid: async (client, { guid }) => text(await client.getByGuid(guid)),
  latest: async (client, { subject }) => known(await client.getLatestSchemaMetadata(subject)),
  version: async (client, { subject, version, deleted }) =>
    known(await client.getSchemaMetadata(subject, version, deleted)),
  versions: (client, { subject }) => client.getAllVersions(subject),
  subjects: (client) => client.getAllSubjects(),
  compatible: (client, { subject, ...schema }) => client.testSubjectCompatibility(subject, schema),
  compatible_with: (client, { subject, version, ...schema }) =>
    client.testCompatibility(subject, version, schema),
  level: (client, { subject }) => client.getCompatibility(subject),
  set_level: (client, { subject, level }) => client.updateCompatibility(subject, level),
  general_level: (client) => client.getDefaultCompatibility(),
  set_general_level: (client, { level }) => client.updateDefaultCompatibility(level),
  config: (client, { subject }) => client.getConfig(subject),
  set_config: (client, { subject, config }) => client.updateConfig(subject, config),
  delete_version: (client, { subject, version, permanent }) =>
    client.deleteSubjectVersion(subject, version, permanent),
  delete_subject: (client, { subject, permanent }) => client.deleteSubject(subject, permanent),
  write: async (client, { topic, value, header }) => {
    const settings = { useLatestVersion: true };
    if (header) settings.schemaIdSerializer = HeaderSchemaIdSerializer;
    return written(new AvroSerializer(client, SerdeType.VALUE, settings), topic, native(value));
  },
  // The client makes up a schema for what it writes, and registers that.
  write_anything: (client, { topic, value }) =>
    written(new AvroSerializer(client, SerdeType.VALUE, { autoRegisterSchemas: true }), topic, value),
  read: async (client, { topic, bytes, headers, latest }) => {
    const deserializer = new AvroDeserializer(client, SerdeType.VALUE, { useLatestVersion: latest });
    const named = Object.entries(headers).map(([name, told]) => [name, Buffer.from(told, "base64")]);
    const payload = Buffer.from(bytes, "base64");
    return plain(await deserializer.deserialize(topic, payload, Object.fromEntries(named)));
  },
};

const known = ({ id, version, guid, schema }) => ({ id, version, guid, schema });

const text = ({ schema, references }) => ({ schema, references: references ?? [] });

async function written(serializer, topic, value) {
  const headers = {};
  const payload = await serializer.serialize(topic, value, headers);
  const named = Object.entries(headers).map(([name, told]) => [name, told.toString("base64")]);
  return { bytes: payload.toString("base64"), headers: Object.fromEntries(named) };
}

/** A value as the client takes it: in JSON, bytes are text. */
const native = ({ photo, ...rest }) => ({ ...rest, photo: Buffer.from(photo, "base64") });

const plain = ({ photo, ...rest }) =>
  photo === undefined ? rest : { ...rest, photo: photo.toString("base64") };

/** What the client's user sees of an error. */
const refused = (error) => ({
  status: error instanceof RestError ? error.status : null,
  code: error instanceof RestError ? error.errorCode : null,
  message: error.message,
});

/** A client that has cached nothing, and that does not ask twice. */
function clientOf({ url, user, password, ca }) {
  const settings = { baseURLs: [url], maxRetries: 0, createAxiosDefaults: { timeout: 30_000 } };
  if (user) {
    const userInfo = `${user}:${password}`;
    settings.basicAuthCredentials = { credentialsSource: "USER_INFO", userInfo };
  }
  if (ca) settings.createAxiosDefaults.httpsAgent = new https.Agent({ ca: fs.readFileSync(ca) });
  return new SchemaRegistryClient(settings);
}

async function answer(registry, { call, ...rest }) {
  const client = clientOf(registry);
  try {
    return { value: await CALLS[call](client, rest) };
  } catch (error) {
    return { error: refused(error) };
  } finally {
    await client.close();
  }
}

async function main() {
  let registry = null;
  for await (const line of readline.createInterface({ input: process.stdin })) {
    const told = JSON.parse(line);
    if (registry === null) registry = told;
    else process.stdout.write(`${JSON.stringify(await answer(registry, told))}\n`);
  }
}

main();
