#include "privacy/verify/charges.hpp"

#include <algorithm>
#include <string>

#include "privacy/mechanism/mechanism_text.hpp"

namespace cudp::verify {
namespace {

std::string_view word(std::string_view& line) {
  const std::size_t space = std::min(line.find(' '), line.size());
  const std::string_view first = line.substr(0, space);
  line.remove_prefix(std::min(space + 1, line.size()));
  return first;
}

}  // namespace

std::uint64_t Charges::lost_keys_before(std::uint64_t charged) const {
  return static_cast<std::uint64_t>(
      std::ranges::count_if(lost, [&](std::uint64_t position) { return position < charged; }));
}

const privacy::Mechanism* Charges::find(std::uint64_t number, std::uint64_t key,
                                        std::uint64_t charged) const {
  for (const Charge& c : lines)
    if (c.numbered && c.key == key && c.first <= number && number - c.first < c.release.count &&
        c.position + (number - c.first) < charged)
      return &c.release.mechanism;
  return nullptr;
}

Charges read_charges(std::string_view text) {
  // Removes what follows the line `end`, such as an authentication code.
  std::size_t end = text.starts_with("end ") ? 0 : text.find("\nend ");
  if (end != std::string_view::npos) end = text.find('\n', end + 1);
  if (end != std::string_view::npos) text = text.substr(0, end + 1);
  Charges charges;
  charges.ledger = privacy::Ledger::from_text(text, "ledger");
  if (const auto& split = charges.ledger.split()) {
    charges.lines.push_back({.numbered = false,
                             .first = 0,
                             .release = {privacy::Gaussian{split->sigma}, 1},
                             .position = 0,
                             .key = 0});
    charges.total = 1;
  }
  while (!text.empty()) {
    const std::size_t newline = text.find('\n');
    std::string_view line = text.substr(0, newline);
    text.remove_prefix(newline + 1);
    line = line.substr(0, line.rfind(" #"));
    const std::string_view kind = word(line);
    if (kind == "key") charges.lost.push_back(charges.total);
    if (kind != "steps" && kind != "release") continue;
    Charge c{.numbered = kind == "steps",
             .first = 0,
             .release = {},
             .position = charges.total,
             .key = charges.lost.size()};
    if (c.numbered) c.first = std::stoull(std::string(word(line)));
    c.release.count = std::stoull(std::string(word(line)));
    c.release.mechanism = privacy::take_mechanism(line);
    charges.total += c.release.count;
    charges.lines.push_back(std::move(c));
  }
  return charges;
}

}  // namespace cudp::verify
