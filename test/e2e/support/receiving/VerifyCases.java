import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.security.GeneralSecurityException;
import java.time.Instant;
import java.util.Base64;
import java.util.Map;

/** Reads cases from standard input, one a line, and says of each whether the page's verify accepts it. */
public final class VerifyCases {
  public static void main(String[] args) throws Exception {
    var lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    for (String line = lines.readLine(); line != null; line = lines.readLine()) {
      String[] part = line.split("\t", -1);
      var headers = Map.of("webhook-id", part[1], "webhook-timestamp", part[2], "webhook-signature", part[3]);
      byte[] body = Base64.getDecoder().decode(part[4]);
      Instant now = Instant.ofEpochSecond(Long.parseLong(part[5]));
      try {
        Webhooks.verify(part[0], name -> headers.get(name).isEmpty() ? null : headers.get(name), body, now);
        System.out.println("accepted");
      } catch (GeneralSecurityException | IllegalArgumentException refusal) {
        System.out.println("refused");
      }
    }
  }
}
