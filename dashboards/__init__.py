"""The dashboard: a Panel application on stored results. See `vitolab.dashboard`."""
