#include "privacy/mechanism/privacy_bound.hpp"

namespace cudp::privacy {

std::string_view name(AccountantKind kind) {
  switch (kind) {
    case AccountantKind::pld:
      return "pld";
    case AccountantKind::rdp:
      return "rdp";
    case AccountantKind::best:
      return "best";
    case AccountantKind::advanced:
      return "advanced";
  }
  return "unknown";
}

std::string_view bound_name(const PrivacyBound& bound) {
  return bound.accountant == AccountantKind::best ? "gaussian" : name(bound.accountant);
}

}  // namespace cudp::privacy
