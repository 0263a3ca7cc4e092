package probe

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"
)

// HoldReport describes how long a streaming response stayed open.
type HoldReport struct {
	Status int
	Body   []byte        // the first 64 KiB, untrusted
	Held   time.Duration // from the headers until the response ended or Hold closed it
	Ended  bool          // the server, or a proxy in between, ended the response
	Why    string        // the network error that ended the response; "": none
}

// Hold sends a GET request for a streaming response, such as a watch. It reads until the response ends or the time
// limit long is reached. It returns an error only if there was no response, or if ctx ended first.
func Hold(ctx context.Context, url string, long time.Duration, o HTTPOptions) (HoldReport, error) {
	short, cancel := bounded(ctx)
	defer cancel()
	client, err := o.client()
	if err != nil {
		return HoldReport{}, err
	}
	client.Timeout = 0
	defer client.CloseIdleConnections()
	whole, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	req, err := http.NewRequestWithContext(whole, http.MethodGet, url, nil)
	if err != nil {
		return HoldReport{}, fmt.Errorf("send a request to %s: %w", plain(url), err)
	}
	for name, values := range o.Header {
		req.Header[http.CanonicalHeaderKey(name)] = values
	}
	late := context.AfterFunc(short, func() { stop(context.Cause(short)) })
	resp, err := client.Do(req)
	if err != nil {
		return HoldReport{}, orCause(whole, err)
	}
	late()
	defer resp.Body.Close()
	report, began := HoldReport{Status: resp.StatusCode}, time.Now()
	letGo := time.AfterFunc(long, func() { stop(errLetGo) })
	defer letGo.Stop()
	buf := make([]byte, 4096)
	for {
		n, err := resp.Body.Read(buf)
		report.Body = append(report.Body, buf[:min(n, bodyLimit-len(report.Body))]...)
		if err == nil {
			continue
		}
		report.Held = time.Since(began)
		switch {
		case errors.Is(context.Cause(whole), errLetGo):
		case ctx.Err() != nil:
			return report, context.Cause(ctx)
		default:
			report.Ended = true
			if !errors.Is(err, io.EOF) {
				report.Why = plain(err.Error())
			}
		}
		return report, nil
	}
}

var errLetGo = errors.New("the connection stayed open for the requested time")
