package charts

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"net"
	"net/http"
	"path"
	"time"
)

// Repository serves charts over plain HTTP on loopback. It has the layout of a chart repository: index.yaml and one
// archive per version.
type Repository struct {
	URL    string
	Charts []*Chart
	server *http.Server
}

// Start serves Renku's repository on a free port until ctx is done or Close is called.
func Start(ctx context.Context) (*Repository, error) { return StartOf(ctx, Renku) }

// StartOf is like Start, but serves the charts in catalog.
func StartOf(ctx context.Context, catalog [][]string) (*Repository, error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	r := &Repository{URL: "http://" + listener.Addr().String()}
	files, err := r.pack(catalog, time.Now())
	if err != nil {
		listener.Close()
		return nil, err
	}
	r.server = &http.Server{Handler: serve(files), ReadHeaderTimeout: 10 * time.Second}
	context.AfterFunc(ctx, r.Close)
	go func() { _ = r.server.Serve(listener) }()
	return r, nil
}

// Close stops the repository.
func (r *Repository) Close() { _ = r.server.Close() }

// Find returns the chart with the given name and version.
func (r *Repository) Find(name, version string) (*Chart, error) { return Find(r.Charts, name, version) }

// pack returns the served files by path.
func (r *Repository) pack(catalog [][]string, at time.Time) (map[string][]byte, error) {
	var err error
	if r.Charts, err = All(catalog, r.URL); err != nil {
		return nil, err
	}
	files, entries := map[string][]byte{}, map[string][]any{}
	for _, c := range r.Charts {
		archive, err := c.archive(at)
		if err != nil {
			return nil, err
		}
		name := c.Name + "-" + c.Version + ".tgz"
		files["/"+name] = archive
		digest := sha256.Sum256(archive)
		entry := maps.Clone(c.Metadata)
		entry["created"] = at.UTC().Format(time.RFC3339)
		entry["digest"] = hex.EncodeToString(digest[:])
		entry["urls"] = []string{r.URL + "/" + name}
		entries[c.Name] = append([]any{entry}, entries[c.Name]...) // newest first
	}
	// JSON is valid YAML.
	files["/index.yaml"], err = json.MarshalIndent(map[string]any{
		"apiVersion": "v1", "generated": at.UTC().Format(time.RFC3339), "entries": entries,
	}, "", " ")
	return files, err
}

// archive packs the chart and its dependencies as helm package does.
func (c *Chart) archive(at time.Time) ([]byte, error) {
	var out bytes.Buffer
	zip := gzip.NewWriter(&out)
	pack := tar.NewWriter(zip)
	if err := c.write(pack, c.Name, at); err != nil {
		return nil, err
	}
	if err := pack.Close(); err != nil {
		return nil, err
	}
	err := zip.Close()
	return out.Bytes(), err
}

func (c *Chart) write(pack *tar.Writer, folder string, at time.Time) error {
	metadata, err := json.Marshal(c.Metadata)
	if err != nil {
		return err
	}
	put := func(name string, data []byte) error {
		header := &tar.Header{Name: path.Join(folder, name), Mode: 0o644, Size: int64(len(data)), ModTime: at}
		if err := pack.WriteHeader(header); err != nil {
			return err
		}
		_, err := pack.Write(data)
		return err
	}
	if err := put("Chart.yaml", metadata); err != nil {
		return err
	}
	for _, name := range c.names("") {
		if err := put(name, c.Files[name]); err != nil {
			return err
		}
	}
	for _, dependency := range c.Dependencies {
		if err := dependency.write(pack, path.Join(folder, "charts", dependency.Name), at); err != nil {
			return err
		}
	}
	return nil
}

func serve(files map[string][]byte) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		data, ok := files[r.URL.Path]
		switch {
		case r.Method != http.MethodGet && r.Method != http.MethodHead:
			http.Error(w, "stand-in: this chart repository is read-only", http.StatusMethodNotAllowed)
		case !ok:
			http.Error(w, "stand-in: this chart repository has no such file", http.StatusNotFound)
		default:
			w.Header().Set("Content-Type", "application/octet-stream")
			_, _ = w.Write(data)
		}
	})
}
