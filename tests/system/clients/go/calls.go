package main

import (
	"github.com/confluentinc/confluent-kafka-go/v2/schemaregistry"
)

// known is what a registry tells of a version.
type known struct {
	ID      int    `json:"id"`
	Version int    `json:"version"`
	GUID    string `json:"guid"`
	Schema  string `json:"schema"`
}

// text is a schema without its place.
type text struct {
	Schema     string                     `json:"schema"`
	References []schemaregistry.Reference `json:"references"`
}

type call func(schemaregistry.Client, request) (any, error)

// calls are what a test can ask for, and what the client does for it.
var calls = map[string]call{
	"register": func(c schemaregistry.Client, r request) (any, error) {
		return version(c.RegisterFullResponse(r.Subject, r.schema(), false))
	},
	"lookup": func(c schemaregistry.Client, r request) (any, error) {
		return version(c.GetIDFullResponse(r.Subject, r.schema(), false))
	},
	"schema_by_id": func(c schemaregistry.Client, r request) (any, error) {
		return content(c.GetBySubjectAndID(r.Subject, r.ID))
	},
	"schema_by_guid": func(c schemaregistry.Client, r request) (any, error) {
		return content(c.GetByGUID(r.GUID))
	},
	"latest": func(c schemaregistry.Client, r request) (any, error) {
		return version(c.GetLatestSchemaMetadata(r.Subject))
	},
	"version": func(c schemaregistry.Client, r request) (any, error) {
		return version(c.GetSchemaMetadataIncludeDeleted(r.Subject, r.Version, r.Deleted))
	},
	"versions": func(c schemaregistry.Client, r request) (any, error) {
		return c.GetAllVersions(r.Subject)
	},
	"subjects": func(c schemaregistry.Client, _ request) (any, error) {
		return c.GetAllSubjects()
	},
	"compatible": func(c schemaregistry.Client, r request) (any, error) {
		return c.TestSubjectCompatibility(r.Subject, r.schema())
	},
	"compatible_with": func(c schemaregistry.Client, r request) (any, error) {
		return c.TestCompatibility(r.Subject, r.Version, r.schema())
	},
	"level": func(c schemaregistry.Client, r request) (any, error) {
		return level(c.GetCompatibility(r.Subject))
	},
	"set_level": func(c schemaregistry.Client, r request) (any, error) {
		var wanted schemaregistry.Compatibility
		if err := wanted.ParseString(r.Level); err != nil {
			return nil, err
		}
		return level(c.UpdateCompatibility(r.Subject, wanted))
	},
	"general_level": func(c schemaregistry.Client, _ request) (any, error) {
		return level(c.GetDefaultCompatibility())
	},
	"set_general_level": func(c schemaregistry.Client, r request) (any, error) {
		var wanted schemaregistry.Compatibility
		if err := wanted.ParseString(r.Level); err != nil {
			return nil, err
		}
		return level(c.UpdateDefaultCompatibility(wanted))
	},
	"config": func(c schemaregistry.Client, r request) (any, error) {
		return config(c.GetConfig(r.Subject, false))
	},
	"set_config": func(c schemaregistry.Client, r request) (any, error) {
		return config(c.UpdateConfig(r.Subject, r.Config))
	},
	"delete_version": func(c schemaregistry.Client, r request) (any, error) {
		return c.DeleteSubjectVersion(r.Subject, r.Version, r.Permanent)
	},
	"delete_subject": func(c schemaregistry.Client, r request) (any, error) {
		return c.DeleteSubject(r.Subject, r.Permanent)
	},
	"write":          write,
	"write_anything": writeAnything,
	"read":           read,
}

func (r request) schema() schemaregistry.SchemaInfo {
	return schemaregistry.SchemaInfo{Schema: r.Schema, References: r.References}
}

func version(found schemaregistry.SchemaMetadata, err error) (any, error) {
	return known{found.ID, found.Version, found.GUID, found.Schema}, err
}

func content(found schemaregistry.SchemaInfo, err error) (any, error) {
	return text{found.Schema, append([]schemaregistry.Reference{}, found.References...)}, err
}

func level(found schemaregistry.Compatibility, err error) (any, error) {
	return found.String(), err
}

// config returns an address, since only then does the client write levels as words.
func config(found schemaregistry.ServerConfig, err error) (any, error) {
	return &found, err
}
