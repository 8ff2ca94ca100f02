// Reads cases from standard input, one a line, and says of each whether the page's Verify accepts it.
package main

import (
	"bufio"
	"encoding/base64"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"receiver/webhooks"
)

func main() {
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		part := strings.Split(lines.Text(), "\t")
		header := func(name string) string {
			return map[string]string{"webhook-id": part[1], "webhook-timestamp": part[2], "webhook-signature": part[3]}[name]
		}
		body, _ := base64.StdEncoding.DecodeString(part[4])
		now, _ := strconv.ParseInt(part[5], 10, 64)
		if webhooks.Verify(part[0], header, body, time.Unix(now, 0)) == nil {
			fmt.Println("accepted")
		} else {
			fmt.Println("refused")
		}
	}
}
