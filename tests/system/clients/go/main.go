// Confluent's client for Go, driven line by line: the first line of the input says where the
// registry is, every other one asks for something; each of them is answered with one line of JSON.
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/confluentinc/confluent-kafka-go/v2/schemaregistry"
	"github.com/confluentinc/confluent-kafka-go/v2/schemaregistry/rest"
)

// longestLine is how much a request may have.
const longestLine = 1 << 20

// registry says where the server is, and who asks.
type registry struct {
	URL      string `json:"url"`
	User     string `json:"user"`
	Password string `json:"password"`
	CA       string `json:"ca"`
}

// request is one line of the input; each call uses some of it.
type request struct {
	Call       string                      `json:"call"`
	Subject    string                      `json:"subject"`
	Schema     string                      `json:"schema"`
	References []schemaregistry.Reference  `json:"references"`
	ID         int                         `json:"id"`
	GUID       string                      `json:"guid"`
	Version    int                         `json:"version"`
	Deleted    bool                        `json:"deleted"`
	Permanent  bool                        `json:"permanent"`
	Level      string                      `json:"level"`
	Config     schemaregistry.ServerConfig `json:"config"`
	Topic      string                      `json:"topic"`
	Value      json.RawMessage             `json:"value"`
	Header     bool                        `json:"header"`
	Latest     bool                        `json:"latest"`
	Bytes      []byte                      `json:"bytes"`
	Headers    map[string][]byte           `json:"headers"`
}

// refusal is what the client's user sees of an error.
type refusal struct {
	Code    *int   `json:"code"`
	Message string `json:"message"`
}

// newClient makes a client that has cached nothing, and that does not ask twice.
func (r registry) newClient() (schemaregistry.Client, error) {
	config := schemaregistry.NewConfig(r.URL)
	if r.User != "" {
		config = schemaregistry.NewConfigWithBasicAuthentication(r.URL, r.User, r.Password)
	}
	config.SslCaLocation = r.CA
	config.MaxRetries = 0
	config.RequestTimeoutMs = 30_000
	return schemaregistry.NewClient(config)
}

// answer does what one line asks for.
func (r registry) answer(line []byte) (any, error) {
	var asked request
	if err := json.Unmarshal(line, &asked); err != nil {
		return nil, err
	}
	call, found := calls[asked.Call]
	if !found {
		return nil, fmt.Errorf("no such call: %s", asked.Call)
	}
	client, err := r.newClient()
	if err != nil {
		return nil, err
	}
	defer client.Close()
	return call(client, asked)
}

func refused(err error) refusal {
	told := refusal{Message: err.Error()}
	var answered *rest.Error
	if errors.As(err, &answered) {
		told.Code, told.Message = &answered.Code, answered.Message
	}
	return told
}

func serve(input io.Reader, output io.Writer) error {
	lines := bufio.NewScanner(input)
	lines.Buffer(nil, longestLine)
	if !lines.Scan() {
		return lines.Err()
	}
	var at registry
	if err := json.Unmarshal(lines.Bytes(), &at); err != nil {
		return err
	}
	answers := json.NewEncoder(output)
	for lines.Scan() {
		told := map[string]any{}
		if value, err := at.answer(lines.Bytes()); err != nil {
			told["error"] = refused(err)
		} else {
			told["value"] = value
		}
		if err := answers.Encode(told); err != nil {
			return err
		}
	}
	return lines.Err()
}

func main() {
	if err := serve(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
