"""What is here, what is missing and how to mend it: each part looks at one thing and says findings, nothing more.

No part changes anything, starts a server or uses the network, and none shows the value of a variable. Programs are
asked within a bound (`asking`); what cannot be told without asking somebody else is said to be unknown.
"""
