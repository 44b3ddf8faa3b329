#pragma once
// Ranks that are threads of the test. A call that does not match those of the others is an error at
// once.
#include <chrono>
#include <exception>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "runtime/ranks/shared.hpp"

namespace cudp {

/// Runs `body` on n ranks. Returns the error of each rank; empty if it finished.
inline std::vector<std::string> try_on_ranks(
    int n, const std::function<void(Ranks&)>& body,
    std::chrono::milliseconds timeout = std::chrono::seconds(120)) {
  SharedBoard board(n);
  std::vector<std::string> reasons(static_cast<std::size_t>(n));
  std::vector<std::thread> threads;
  for (int r = 0; r < n; ++r)
    threads.emplace_back([&, r] {
      SharedRanks ranks(board, r, timeout);
      try {
        body(ranks);
      } catch (const Error& e) {
        reasons[static_cast<std::size_t>(r)] = e.what();
        ranks.abort(e.what(), e.code());
      }
    });
  for (std::thread& t : threads) t.join();
  return reasons;
}

/// Runs `body` on n ranks. Throws Error if one of them does not finish.
inline void on_ranks(int n, const std::function<void(Ranks&)>& body) {
  for (const std::string& reason : try_on_ranks(n, body))
    if (!reason.empty()) throw Error(reason);
}

}  // namespace cudp
