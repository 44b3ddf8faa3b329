#include "runtime/ranks/ranks.hpp"

#include <cmath>

namespace cudp {
namespace {

class Alone final : public Ranks {
 public:
  int rank() const override { return 0; }
  int size() const override { return 1; }
  int local_rank() const override { return 0; }
  int local_size() const override { return 1; }
  std::string transport() const override { return "none: one process"; }
  std::chrono::milliseconds timeout() const override { return std::chrono::minutes(10); }
  void sum(const char*, std::span<std::int64_t>) override {}
  void broadcast(const char*, std::span<std::byte>, Patience) override {}
  std::vector<std::string> gather(const char*, std::span<const std::byte> mine) override {
    return {std::string(reinterpret_cast<const char*>(mine.data()), mine.size())};
  }
  void abort(const std::string&, Exit) noexcept override {}
};

}  // namespace

Ranks& alone() {
  static Alone one;
  return one;
}

void sum_multiples(Ranks& ranks, const char* what, std::span<double> numbers, double unit) {
  if (ranks.alone()) return;
  std::vector<std::int64_t> units;
  units.reserve(numbers.size());
  for (const double n : numbers) units.push_back(std::llround(n / unit));
  ranks.sum(what, units);
  for (std::size_t i = 0; i < numbers.size(); ++i)
    numbers[i] = unit * static_cast<double>(units[i]);
}

void broadcast_text(Ranks& ranks, const char* what, std::string& text) {
  std::uint64_t size = text.size();
  ranks.broadcast(what, std::as_writable_bytes(std::span(&size, 1)));
  text.resize(size);
  ranks.broadcast(what, std::as_writable_bytes(std::span(text)));
}

std::vector<std::string> gather_text(Ranks& ranks, const char* what, const std::string& mine) {
  return ranks.gather(what, std::as_bytes(std::span(mine)));
}

}  // namespace cudp
