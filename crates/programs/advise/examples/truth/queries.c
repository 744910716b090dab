/* Threads that look rows up in one SQLite database in memory, all through one
 * connection, whose mutex SQLite takes for each call. */
#include "threads.h"
#include <sqlite3.h>

enum { ROWS = 10000 };

static sqlite3 *database;

static void *run(void *argument)
{
    long me = (long)argument;
    unsigned long drawn = (unsigned long)me + 1;
    sqlite3_stmt *query;
    if (sqlite3_prepare_v2(database, "SELECT value FROM rows WHERE id = ?", -1, &query, NULL))
        return NULL;
    while (!over) {
        drawn = drawn * 6364136223846793005ul + 1442695040888963407ul;
        sqlite3_bind_int(query, 1, (int)((drawn >> 33) % ROWS));
        sqlite3_step(query);
        sqlite3_reset(query);
        for (int i = 0; i < 300; i++)
            drawn = drawn * 6364136223846793005ul + 1442695040888963407ul;
        turns[me][0]++;
    }
    sqlite3_finalize(query);
    return NULL;
}

int main(int count, char **words)
{
    long number = count > 1 ? atol(words[1]) : 2;
    sqlite3_config(SQLITE_CONFIG_SERIALIZED);
    if (sqlite3_open(":memory:", &database))
        return 2;
    if (sqlite3_exec(database,
                     "CREATE TABLE rows (id INTEGER PRIMARY KEY, value TEXT);"
                     "WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n"
                     " WHERE i < 9999) INSERT INTO rows SELECT i, 'row ' || i FROM n;",
                     NULL, NULL, NULL))
        return 2;
    return measured(number);
}
