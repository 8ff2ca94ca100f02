<?php
// Reads cases from standard input, one a line, and says of each whether the page's verify accepts it.
require __DIR__ . '/verify.php';

while (($line = fgets(STDIN)) !== false) {
    [$secret, $id, $timestamp, $signature, $body, $now] = explode("\t", rtrim($line, "\n"));
    $headers = ['webhook-id' => $id, 'webhook-timestamp' => $timestamp, 'webhook-signature' => $signature];
    try {
        verify($secret, array_filter($headers, fn ($value) => $value !== ''), base64_decode($body), (int) $now);
        echo "accepted\n";
    } catch (UnexpectedValueException) {
        echo "refused\n";
    }
}
