// The library a second time, beside the test's own inclusion of it.
#include <keyfold/arrow.hpp>
#include <keyfold/catch2.hpp>
#include <keyfold/csv.hpp>
#include <keyfold/debezium.hpp>
#include <keyfold/format.hpp>
#include <keyfold/json.hpp>
#include <keyfold/keyfold.hpp>
#include <keyfold/print.hpp>
#include <keyfold/shared_table.hpp>
#include <keyfold/snapshot.hpp>
#include <keyfold/store.hpp>
