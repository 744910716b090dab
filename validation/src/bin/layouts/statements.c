/* Runs SQL statements of several kinds on a database in memory, as many rows as the first
 * argument says. */
#include <stdio.h>
#include <stdlib.h>
#include "sqlite3.h"

static sqlite3 *database;

static void run(const char *text)
{
    char *error = 0;
    if (sqlite3_exec(database, text, 0, 0, &error)) {
        fprintf(stderr, "%s: %s\n", text, error);
        exit(1);
    }
}

static long long ask(const char *text)
{
    sqlite3_stmt *statement;
    long long sum = 0;
    if (sqlite3_prepare_v2(database, text, -1, &statement, 0))
        exit(2);
    while (sqlite3_step(statement) == SQLITE_ROW)
        sum += sqlite3_column_int64(statement, 0);
    sqlite3_finalize(statement);
    return sum;
}

int main(int count, char **arguments)
{
    long rows = count > 1 ? atol(arguments[1]) : 1000;
    char text[256];
    if (sqlite3_open(":memory:", &database))
        return 3;
    run("create table people (id integer primary key, name text, age int, town text)");
    run("create index towns on people (town, age)");
    run("begin");
    for (long n = 0; n < rows; n++) {
        snprintf(text, sizeof text,
                 "insert into people values (%ld, 'name %ld', %ld, 'town %ld')", n,
                 n * 7919 % 10007, n * 31 % 97, n * 17 % 211);
        run(text);
    }
    run("commit");
    long long sum = ask("select count(*) from people where name like '%99%'");
    sum += ask("select max(age) from people group by town order by town desc");
    sum += ask("select a.id from people a join people b on a.id = b.age * 13 where b.town < 'town 3'");
    run("update people set age = age + 1 where town = 'town 5' or name > 'name 9'");
    run("delete from people where id % 3 = 0");
    sum += ask("select sum(length(name)) from people");
    printf("%lld\n", sum);
    return 0;
}
