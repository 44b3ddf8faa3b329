#include "privacy/verify/findings.hpp"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "privacy/text/number.hpp"

namespace cudp::verify {
namespace {

using privacy::number;

/// maximum number of findings that are kept for each rule
constexpr std::size_t kMaxFindings = 10;

}  // namespace

void Findings::add(const char* rule, std::string what) {
  const auto same = std::ranges::count(all, rule, &Finding::rule);
  if (static_cast<std::size_t>(same) < kMaxFindings) all.push_back({rule, std::move(what)});
}

void Findings::expect(bool holds, const char* rule, const std::string& where, double expected,
                      double found) {
  if (!holds) add(rule, where + ": expected " + number(expected) + ", found " + number(found));
}

void Findings::skip(const std::string& what) {
  if (std::ranges::find(skipped, what) == skipped.end()) skipped.push_back(what);
}

}  // namespace cudp::verify
