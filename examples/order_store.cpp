// A service that keeps its orders in a store, is killed, and goes on where it was.
#include <keyfold/keyfold.hpp>
#include <keyfold/store.hpp>

#include <boost/describe.hpp>

#include <csignal>
#include <filesystem>
#include <iostream>
#include <string>
#include <vector>

#include <sys/wait.h>
#include <unistd.h>

struct Order {
  int id = 0;
  std::string status;
};
BOOST_DESCRIBE_STRUCT(Order, (), (id, status))

using Orders = keyfold::Table<Order, keyfold::Key<&Order::id>>;
using OrderStore = keyfold::Store<Orders>;

// Takes messages number 1, 2, 3...; each is one commit, and is taken once.
void serve(const std::filesystem::path& directory, std::uint64_t last_message, bool is_killed) {
  auto store = OrderStore::open(directory);
  for (std::uint64_t message = store.table().last_applied("messages").value_or(0) + 1;
       message <= last_message; ++message) {
    const int id = static_cast<int>(message % 3) + 1;
    store.once("messages", message).upsert({Order{id, "message " + std::to_string(message)}});
  }
  if (is_killed) ::raise(SIGKILL);
}

int main() {
  std::string name = (std::filesystem::temp_directory_path() / "orders-XXXXXX").string();
  if (::mkdtemp(name.data()) == nullptr) return 1;
  const std::filesystem::path directory = name;

  for (const std::uint64_t last_message : {4U, 7U}) {
    if (::fork() == 0) serve(directory, last_message, true);
    int status = 0;
    ::wait(&status);
    std::cout << (WIFSIGNALED(status) ? "killed" : "ended") << " after message " << last_message << "\n";
  }

  {
    const auto store = OrderStore::open(directory);
    std::cout << "version " << store.table().version() << ", " << store.recovered().replayed
              << " commits from the log\n";
    for (const Order& order : store.table()) std::cout << order.id << ' ' << order.status << '\n';
  }
  std::filesystem::remove_all(directory);
}
