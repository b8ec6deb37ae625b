#include "topo/pci.h"

#include <fmt/format.h>

#include <charconv>
#include <cstdlib>
#include <system_error>

namespace gyre::topo {
namespace {

// All of a text as a hexadecimal number of at most so many digits.
std::optional<uint32_t> hex(std::string_view text, size_t digits) {
  uint32_t value = 0;
  const char* const last = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data(), last, value, 16);
  if (text.empty() || text.size() > digits || error != std::errc() || end != last) return std::nullopt;
  return value;
}

}  // namespace

std::optional<PciAddress> parse_pci_address(std::string_view text) {
  const size_t colon = text.find(':');
  if (colon == std::string_view::npos || colon < 4 || text.size() != colon + 8 || text[colon + 3] != ':' || text[colon + 6] != '.')
    return {};
  const auto domain = hex(text.substr(0, colon), 8);
  const auto bus = hex(text.substr(colon + 1, 2), 2);
  const auto device = hex(text.substr(colon + 4, 2), 2);
  const auto function = hex(text.substr(colon + 7, 1), 1);
  if (!domain || !bus || !device || !function || *device > 0x1f || *function > 7) return {};
  return PciAddress{*domain, static_cast<uint8_t>(*bus), static_cast<uint8_t>(*device), static_cast<uint8_t>(*function)};
}

std::string text(const PciAddress& address) {
  return fmt::format("{:04x}:{:02x}:{:02x}.{:x}", address.domain, address.bus, address.device, address.function);
}

// The line codes of the PCI Express base specification: 8b/10b up to its second generation, 128b/130b up to the fifth; the sixth moves
// flits of 256 bytes of which 242 are the transactions'.
double PciLink::bytes_per_s() const {
  const double coded = gt_per_s <= 5 ? 0.8 : gt_per_s <= 32 ? 128.0 / 130 : 242.0 / 256;
  return gt_per_s * 1e9 / 8 * coded * lanes;
}

std::optional<double> parse_link_speed(std::string_view given) {
  const std::string text(given);  // strtod wants its end marked
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  if (end == text.c_str() || !(value > 0 && value <= 1024) || !std::string_view(end).starts_with(" GT/s")) return {};
  return value;
}

}  // namespace gyre::topo
