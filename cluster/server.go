package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"carrick/cluster/clean"
	"carrick/cluster/failure"
	"carrick/cluster/tracked"
)

const (
	whoAge     = 5 * time.Minute
	versionAge = 30 * time.Second
)

// User is a user as the API server identifies it.
type User struct {
	Name   string
	Groups []string
}

// WhoAmI asks the API server to which user the cluster's credentials belong. The result is cached for 5 minutes (see
// tracked.LookOf).
func (c *Cluster) WhoAmI(ctx context.Context) (User, error) {
	user, err := tracked.LookOf(ctx, c, "review/who", whoAge, c.whoAmI)
	if err != nil {
		return User{}, fmt.Errorf("identify the user of the credentials: %w", err)
	}
	return user, nil
}

func (c *Cluster) whoAmI(ctx context.Context) (User, error) {
	for _, version := range []string{"v1", "v1beta1"} {
		review := &authenticationv1.SelfSubjectReview{}
		review.APIVersion, review.Kind = "authentication.k8s.io/"+version, "SelfSubjectReview"
		err := c.review(ctx, "/apis/authentication.k8s.io/"+version+"/selfsubjectreviews", review, review)
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return User{}, err
		}
		return User{Name: review.Status.UserInfo.Username, Groups: review.Status.UserInfo.Groups}, nil
	}
	return User{}, errNoReview
}

// Version is the version of an API server, with its latency and clock skew.
type Version struct {
	Git          string // "v1.36.3"
	Major, Minor int
	Latency      time.Duration // latency of one request on an established connection
	Skew         time.Duration // the server's clock minus this machine's, accurate to half a second
	SkewKnown    bool
}

// Version asks the API server for its version. The result is cached for 30 s (see tracked.LookOf).
func (c *Cluster) Version(ctx context.Context) (Version, error) {
	version, err := tracked.LookOf(ctx, c, "version", versionAge, c.version)
	if err != nil {
		return Version{}, fmt.Errorf("read the API server's version: %w", err)
	}
	return version, nil
}

func (c *Cluster) version(ctx context.Context) (Version, error) {
	if err := c.answering(ctx); err != nil {
		return Version{}, err
	}
	ctx, cancel := c.bounded(ctx)
	defer cancel()
	start := time.Now()
	var wrote, first atomic.Int64 // nanoseconds since start
	traced := httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		WroteRequest:         func(httptrace.WroteRequestInfo) { wrote.Store(int64(time.Since(start))) },
		GotFirstResponseByte: func() { first.Store(int64(time.Since(start))) },
	})
	req, err := http.NewRequestWithContext(traced, http.MethodGet, c.api.Get().AbsPath("version").URL().String(), nil)
	if err != nil {
		return Version{}, err
	}
	req.Header.Set("Accept", "application/json")
	req.Header.Set("User-Agent", c.config.UserAgent)
	resp, err := c.http.Do(req)
	if err != nil {
		return Version{}, caused(ctx, err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	if err != nil {
		return Version{}, caused(ctx, err)
	}
	if resp.StatusCode != http.StatusOK {
		return Version{}, apierrors.NewGenericServerResponse(
			resp.StatusCode, "get", schema.GroupResource{Resource: "version"}, "", clean.Excerpt(body), 0, true,
		)
	}
	version, err := parseVersion(body)
	if err != nil {
		return Version{}, err
	}
	sent := time.Duration(wrote.Load())
	version.Latency = max(0, time.Duration(first.Load())-sent)
	if date, err := http.ParseTime(resp.Header.Get("Date")); err == nil {
		// The Date header is truncated to seconds. On average the actual time is half a second later.
		version.Skew = date.Add(time.Second / 2).Sub(start.Add(sent + version.Latency/2)).Round(time.Millisecond)
		version.SkewKnown = true
	}
	return version, nil
}

func parseVersion(body []byte) (Version, error) {
	var info struct{ Major, Minor, GitVersion string }
	if err := json.Unmarshal(body, &info); err != nil {
		return Version{}, failure.NotJSON(errors.New(clean.Excerpt(body)))
	}
	if info.GitVersion == "" {
		return Version{}, failure.NotJSON(errors.New("the server reports no version"))
	}
	return Version{Git: clean.Text(info.GitVersion), Major: leading(info.Major), Minor: leading(info.Minor)}, nil
}

// leading returns the number at the start of a string such as "36+".
func leading(s string) int {
	end := strings.IndexFunc(s, func(r rune) bool { return r < '0' || r > '9' })
	if end >= 0 {
		s = s[:end]
	}
	n, _ := strconv.Atoi(s)
	return n
}

var namespaces = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}

// UID returns the UID of the namespace kube-system, which identifies the cluster. It returns the same errors as Get.
func (c *Cluster) UID(ctx context.Context) (string, error) {
	object, err := c.Get(ctx, namespaces, "", "kube-system")
	if err != nil {
		return "", err
	}
	return string(object.GetUID()), nil
}
