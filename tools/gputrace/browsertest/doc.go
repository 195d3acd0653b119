// Package browsertest opens pages of gputrace in headless Chromium. It is a module of its own, so
// that puregpu does not depend on the browser's driver.
package browsertest
