/* Parses requests by nginx's own parser, as often as the first argument says: the client is
 * this program, so nothing waits for a network. */
#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>

/* What the parser's files refer to and the parser does not use. */
volatile ngx_cycle_t *ngx_cycle;
ngx_pid_t ngx_pid;
void ngx_log_error_core(ngx_uint_t level, ngx_log_t *log, ngx_err_t err, const char *fmt, ...) { }

static const char *lines[] = {
    "GET / HTTP/1.1\r\n",
    "GET /static/images/logo.png?version=31 HTTP/1.1\r\n",
    "POST /api/v2/users/4711/orders HTTP/1.1\r\n",
    "HEAD /a%20b/../c/./d//e HTTP/1.0\r\n",
    "PUT /upload/part-17.bin HTTP/1.1\r\n",
    "GET http://example.org:8080/path;p=1 HTTP/1.1\r\n",
};
static const char *headers =
    "Host: www.example.org\r\nUser-Agent: Mozilla/5.0 (X11; Linux x86_64)\r\n"
    "Accept: text/html,application/xhtml+xml;q=0.9,*/*;q=0.8\r\n"
    "Accept-Encoding: gzip, deflate, br\r\nCookie: session=0123456789abcdef; theme=dark\r\n"
    "If-None-Match: \"5f3a-61\"\r\nX_Odd: yes\r\nConnection: keep-alive\r\n\r\n";

int main(int count, char **arguments)
{
    long rounds = count > 1 ? atol(arguments[1]) : 1, sum = 0;
    static char text[1024];
    for (long round = 0; round < rounds; round++) {
        static ngx_http_request_t request;
        ngx_buf_t buffer;
        memset(&request, 0, sizeof request);
        memset(&buffer, 0, sizeof buffer);
        int n = sprintf(text, "%s%s", lines[round % 6], headers);
        buffer.start = buffer.pos = (u_char *)text;
        buffer.last = buffer.end = buffer.pos + n;
        if (ngx_http_parse_request_line(&request, &buffer) != NGX_OK)
            return 1;
        sum += request.uri_end - request.uri_start;
        ngx_int_t state;
        while ((state = ngx_http_parse_header_line(&request, &buffer, 1)) == NGX_OK)
            sum += request.header_hash & 7;
        if (state != NGX_HTTP_PARSE_HEADER_DONE)
            return 2;
    }
    printf("%ld\n", sum);
    return 0;
}
