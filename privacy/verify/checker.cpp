#include "privacy/verify/checker.hpp"

#include <optional>
#include <stdexcept>
#include <string>

#include "privacy/verify/method_kinds.hpp"
#include "privacy/verify/run_checker.hpp"
#include "privacy/verify/settings.hpp"
#include "privacy/verify/stated_numbers.hpp"

namespace cudp::verify {
namespace {

template <class Run>
Verdict readable(Run run) {
  try {
    return run();
  } catch (const std::out_of_range& e) {
    throw std::invalid_argument(std::string("evidence: ") + e.what());
  }
}

}  // namespace

Verdict check(const Evidence& evidence) {
  return readable([&] { return RunChecker(evidence).run(); });
}

Verdict check_statements(const Evidence& evidence, Bounds& bounds) {
  return readable([&] {
    const StatedNumbers certificate = read_stated_numbers(evidence.certificate);
    std::optional<Charges> charges;
    if (!evidence.ledger.empty()) charges = read_charges(evidence.ledger);
    Findings findings;
    check_certificate(certificate, charges ? &*charges : nullptr, Settings(evidence.settings),
                      kinds_of(certificate), bounds, findings);
    Verdict verdict;
    move_findings(findings, verdict);
    return verdict;
  });
}

}  // namespace cudp::verify
